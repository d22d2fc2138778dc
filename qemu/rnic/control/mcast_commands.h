/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of multicast groups. */
#pragma once

#include "tern/tern_hw.h"

namespace tern {

struct Card;

hw::tern_hw_aq_status attach_mcast(Card &card, const hw::tern_hw_mcast &cmd);
hw::tern_hw_aq_status detach_mcast(Card &card, const hw::tern_hw_mcast &cmd);

} // namespace tern
