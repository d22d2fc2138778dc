/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of completion queues. */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;
struct Slice;

CommandStatus create_cq(Card &card, const hw::tern_hw_create_cq &cmd, hw::tern_hw_created &result);
std::optional<CommandStatus> resize_cq(Card &card, const hw::tern_hw_resize_cq &cmd, Slice &slice);
CommandStatus moderate_cq(Card &card, const hw::tern_hw_moderate_cq &cmd);
CommandStatus destroy_cq(Card &card, uint32_t cqn);

} // namespace tern
