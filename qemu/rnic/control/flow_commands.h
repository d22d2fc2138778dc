/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of flows. */
#pragma once

#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

struct Card;

hw::tern_hw_aq_status create_flow(Card &card, const hw::tern_hw_create_flow &cmd,
                                  hw::tern_hw_created &result);
hw::tern_hw_aq_status destroy_flow(Card &card, uint32_t number);
hw::tern_hw_aq_status read_counters(Card &card, uint32_t number, hw::tern_hw_counters &result);

} // namespace tern
