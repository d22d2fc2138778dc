/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tern {

using Mac = std::array<uint8_t, 6>;

struct Gid {
	std::array<uint8_t, 16> bytes{};

	/** An IPv4-mapped address, ::ffff:a.b.c.d (annex A17.4.5.2). */
	constexpr bool is_ipv4() const
	{
		return std::all_of(bytes.begin(), bytes.begin() + 10,
		                   [](uint8_t b) { return b == 0; }) &&
		       bytes[10] == 0xff && bytes[11] == 0xff;
	}
	bool operator==(const Gid &) const = default;
};

} // namespace tern
