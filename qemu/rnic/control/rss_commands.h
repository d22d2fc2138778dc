/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of receive WQs and of receive-side scaling. */
#pragma once

#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

struct Card;

hw::tern_hw_aq_status create_wq(Card &card, const hw::tern_hw_create_wq &cmd,
                                hw::tern_hw_created &result);
hw::tern_hw_aq_status modify_wq(Card &card, const hw::tern_hw_modify_wq &cmd);
hw::tern_hw_aq_status destroy_wq(Card &card, uint32_t wqn);
hw::tern_hw_aq_status create_wq_table(Card &card, const hw::tern_hw_create_wq_table &cmd,
                                      hw::tern_hw_created &result);
hw::tern_hw_aq_status destroy_wq_table(Card &card, uint32_t number);
/** The QP is destroyed by DESTROY_QP. */
hw::tern_hw_aq_status create_rss_qp(Card &card, const hw::tern_hw_create_rss_qp &cmd,
                                    hw::tern_hw_created &result);
/** Selects the QP of type ETH for each received frame. */
hw::tern_hw_aq_status set_eth_rss(Card &card, const hw::tern_hw_set_eth_rss &cmd);

} // namespace tern
