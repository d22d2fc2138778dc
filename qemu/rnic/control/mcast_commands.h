/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of multicast groups. */
#pragma once

#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;

CommandStatus attach_mcast(Card &card, const hw::tern_hw_mcast &cmd);
CommandStatus detach_mcast(Card &card, const hw::tern_hw_mcast &cmd);

} // namespace tern
