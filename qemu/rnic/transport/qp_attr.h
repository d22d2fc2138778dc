/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attributes of QPs: the MODIFY_QP transitions and the valid values (IBA vol. 1, 11.2.5.2; XRC:
 * annex A14). Alternate paths are not supported. QPs of types RAW and ETH have the few attributes
 * that Linux sets.
 */
#pragma once

#include <cstdint>

#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

/** The state after MODIFY_QP with @mask in state @from. */
hw::tern_hw_qp_state next_state(hw::tern_hw_qp_state from, uint32_t mask,
                                const hw::tern_hw_qp_attr &attr);

/** Checks the attributes of @attr selected by @mask for a QP of @type in state @from: BAD_STATE if
 * a required one is missing or one is not allowed, BAD_FIELD if a value is out of range. */
CommandStatus check_attributes(hw::tern_hw_qp_type type, hw::tern_hw_qp_state from, uint32_t mask,
                               const hw::tern_hw_qp_attr &attr);

/** Copies the attributes of @from selected by @mask, except the state. */
void take_attributes(uint32_t mask, const hw::tern_hw_qp_attr &from, hw::tern_hw_qp_attr &to);

} // namespace tern
