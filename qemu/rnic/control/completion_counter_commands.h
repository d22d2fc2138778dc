/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands for completion counters. */
#pragma once

#include "qemu/rnic/card.h"
#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

CommandStatus create_completion_counter(Card &card, const hw::tern_hw_create_comp_counter &cmd,
                                        hw::tern_hw_created &result);
CommandStatus modify_completion_counter(Card &card, const hw::tern_hw_modify_comp_counter &cmd);
CommandStatus attach_completion_counter(Card &card, const hw::tern_hw_attach_comp_counter &cmd);

} // namespace tern
