/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of protection domains, regions and windows. */
#pragma once

#include <cstdint>

#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;

CommandStatus create_mr(Card &card, const hw::tern_hw_create_mr &cmd, hw::tern_hw_created &result);
CommandStatus modify_mr(Card &card, const hw::tern_hw_modify_mr &cmd);
CommandStatus create_fast_mr(Card &card, uint32_t pdn, hw::tern_hw_created &result);
CommandStatus destroy_mr(Card &card, uint32_t key);
CommandStatus sync_mr(Card &card, const hw::tern_hw_object &cmd);
CommandStatus alloc_mw(Card &card, const hw::tern_hw_alloc_mw &cmd, hw::tern_hw_created &result);
CommandStatus dealloc_mw(Card &card, uint32_t key);

} // namespace tern
