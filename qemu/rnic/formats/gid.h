/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tern {

/** The QP number of all multicasts (IBA 10.5). */
inline constexpr uint32_t kMulticastQpn = 0xffffff;

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
	/** ff00::/8, or the IPv4-mapped form of 224.0.0.0/4. */
	constexpr bool is_multicast() const
	{
		return bytes[0] == 0xff || (is_ipv4() && (bytes[12] & 0xf0) == 0xe0);
	}
	bool operator==(const Gid &) const = default;
};

} // namespace tern
