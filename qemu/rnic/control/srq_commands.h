/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of shared receive queues. */
#pragma once

#include <cstdint>
#include <optional>

#include "tern/tern_hw.h"

namespace tern {

struct Card;
struct Slice;

hw::tern_hw_aq_status create_srq(Card &card, const hw::tern_hw_create_srq &cmd,
                                 hw::tern_hw_created &result);
hw::tern_hw_aq_status resize_srq(Card &card, const hw::tern_hw_resize_srq &cmd);
hw::tern_hw_aq_status set_srq_limit(Card &card, const hw::tern_hw_set_srq_limit &cmd);
hw::tern_hw_aq_status query_srq(Card &card, uint32_t srqn, hw::tern_hw_srq_attr &attr);
std::optional<hw::tern_hw_aq_status> destroy_srq(Card &card, uint32_t srqn, Slice &slice);

} // namespace tern
