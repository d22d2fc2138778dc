/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace tern {

/** Whether all bytes of @reserved from @from on are zero. */
template <typename T>
bool all_zero(const T &reserved, size_t from = 0)
{
	const auto bytes = std::as_bytes(std::span(&reserved, 1)).subspan(from);
	return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

} // namespace tern
