/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of completion queues. */
#pragma once

#include <cstdint>
#include <optional>

#include "tern/tern_hw.h"

namespace tern {

struct Card;
struct Slice;

hw::tern_hw_aq_status create_cq(Card &card, const hw::tern_hw_create_cq &cmd,
                                hw::tern_hw_created &result);
std::optional<hw::tern_hw_aq_status> resize_cq(Card &card, const hw::tern_hw_resize_cq &cmd,
                                               Slice &slice);
hw::tern_hw_aq_status moderate_cq(Card &card, const hw::tern_hw_moderate_cq &cmd);
hw::tern_hw_aq_status destroy_cq(Card &card, uint32_t cqn);

} // namespace tern
