/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "tern/tern_hw.h"

namespace tern {

struct Card;

hw::tern_hw_aq_status query_congestion(const Card &card, hw::tern_hw_congestion &result);
hw::tern_hw_aq_status set_congestion(Card &card, const hw::tern_hw_set_congestion &cmd);

} // namespace tern
