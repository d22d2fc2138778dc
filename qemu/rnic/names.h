/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of the card's enums: those of tern_hw.h without prefix. */
#pragma once

#include <cstdint>
#include <string_view>

#include "tern/tern_hw.h"

namespace tern {

std::string_view command_name(uint16_t opcode);
std::string_view command_status_name(uint8_t status);
std::string_view cqe_status_name(uint8_t status);
std::string_view fatal_name(hw::tern_hw_fatal reason);
std::string_view qp_state_name(hw::tern_hw_qp_state state);
std::string_view qp_type_name(hw::tern_hw_qp_type type);
/** In lower case. */
std::string_view stat_name(hw::tern_hw_stat which);

} // namespace tern
