/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of shared receive queues. */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;
struct Slice;

CommandStatus create_srq(Card &card, const hw::tern_hw_create_srq &cmd,
                         hw::tern_hw_created &result);
CommandStatus resize_srq(Card &card, const hw::tern_hw_resize_srq &cmd);
CommandStatus set_srq_limit(Card &card, const hw::tern_hw_set_srq_limit &cmd);
CommandStatus query_srq(Card &card, uint32_t srqn, hw::tern_hw_srq_attr &attr);
std::optional<CommandStatus> destroy_srq(Card &card, uint32_t srqn, Slice &slice);

} // namespace tern
