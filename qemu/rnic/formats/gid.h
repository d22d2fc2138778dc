/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tern {

/** The destination QPN of all multicast packets (IBA 10.5). */
inline constexpr uint32_t kMulticastQpn = 0xffffff;

using Mac = std::array<uint8_t, 6>;

struct Gid {
	std::array<uint8_t, 16> bytes{};

	/** An IPv4-mapped address, ::ffff:a.b.c.d (annex A17.4.5.2). */
	constexpr bool is_ipv4() const
	{
		const auto w = words();
		return w[0] == 0 && (w[1] & 0xffffffff) == 0xffff0000;
	}
	/** ff00::/8, or the IPv4-mapped form of 224.0.0.0/4. */
	constexpr bool is_multicast() const
	{
		return bytes[0] == 0xff || (is_ipv4() && (bytes[12] & 0xf0) == 0xe0);
	}
	constexpr bool operator==(const Gid &other) const
	{
		const auto a = words(), b = other.words();
		return a[0] == b[0] && a[1] == b[1];
	}

private:
	/* As little-endian words, because comparing addresses is on the path of each packet. */
	constexpr std::array<uint64_t, 2> words() const
	{
		return std::bit_cast<std::array<uint64_t, 2>>(bytes);
	}
};

} // namespace tern
