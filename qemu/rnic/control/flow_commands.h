/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of flows. */
#pragma once

#include <cstdint>

#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;

CommandStatus create_flow(Card &card, const hw::tern_hw_create_flow &cmd,
                          hw::tern_hw_created &result);
CommandStatus destroy_flow(Card &card, uint32_t number);
CommandStatus read_counters(Card &card, uint32_t number, hw::tern_hw_counters &result);

} // namespace tern
