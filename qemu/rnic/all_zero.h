/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace tern {

/** The number of bytes at the beginning of @value that are zero. */
template <typename T>
size_t leading_zeros(const T &value)
{
	const auto bytes = std::as_bytes(std::span(&value, 1));
	const auto other =
	        std::ranges::find_if(bytes, [](std::byte b) { return b != std::byte{0}; });
	return static_cast<size_t>(other - bytes.begin());
}

/** Whether all bytes of @reserved from @from on are zero. */
template <typename T>
bool all_zero(const T &reserved, size_t from = 0)
{
	const auto bytes = std::as_bytes(std::span(&reserved, 1)).subspan(from);
	return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

} // namespace tern
