/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace tern {

struct Card;

/** As Rnic::describe(). */
std::string describe(const Card &card, std::optional<uint32_t> qpn, size_t most);

} // namespace tern
