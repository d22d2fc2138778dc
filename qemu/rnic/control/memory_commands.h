/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of protection domains, regions and windows. */
#pragma once

#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

struct Card;

hw::tern_hw_aq_status create_mr(Card &card, const hw::tern_hw_create_mr &cmd,
                                hw::tern_hw_created &result);
hw::tern_hw_aq_status modify_mr(Card &card, const hw::tern_hw_modify_mr &cmd);
hw::tern_hw_aq_status create_fast_mr(Card &card, uint32_t pdn, hw::tern_hw_created &result);
hw::tern_hw_aq_status destroy_mr(Card &card, uint32_t key);
hw::tern_hw_aq_status sync_mr(Card &card, uint32_t key);
hw::tern_hw_aq_status alloc_mw(Card &card, const hw::tern_hw_alloc_mw &cmd,
                               hw::tern_hw_created &result);
hw::tern_hw_aq_status dealloc_mw(Card &card, uint32_t key);

} // namespace tern
