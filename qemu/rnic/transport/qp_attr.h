/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The attributes of QPs of the InfiniBand services: which MODIFY_QP a QP takes in which state, and
 * which values (IBA vol. 1, 11.2.5.2; XRC: annex A14). There are no alternate paths.
 */
#pragma once

#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

/** The state that MODIFY_QP with @mask leads to from @from. */
hw::tern_hw_qp_state next_state(hw::tern_hw_qp_state from, uint32_t mask,
                                const hw::tern_hw_qp_attr &attr);

/** Whether a QP of @type in state @from takes the attributes of @attr that @mask names: BAD_STATE
 * when not all that it needs and may have now, BAD_FIELD when a value is out of range. */
hw::tern_hw_aq_status check_attributes(hw::tern_hw_qp_type type, hw::tern_hw_qp_state from,
                                       uint32_t mask, const hw::tern_hw_qp_attr &attr);

/** Copies those of @from that @mask names, all but the state. */
void take_attributes(uint32_t mask, const hw::tern_hw_qp_attr &from, hw::tern_hw_qp_attr &to);

} // namespace tern
