/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;

CommandStatus query_congestion(const Card &card, hw::tern_hw_congestion &result);
CommandStatus set_congestion(Card &card, const hw::tern_hw_set_congestion &cmd);

} // namespace tern
