/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of queue pairs. */
#pragma once

#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

struct Card;

hw::tern_hw_aq_status create_qp(Card &card, const hw::tern_hw_create_qp &cmd,
                                hw::tern_hw_created &result);
hw::tern_hw_aq_status modify_qp(Card &card, const hw::tern_hw_modify_qp &cmd);
hw::tern_hw_aq_status query_qp(Card &card, uint32_t qpn, hw::tern_hw_qp_attr &attr);
hw::tern_hw_aq_status destroy_qp(Card &card, uint32_t qpn);

} // namespace tern
