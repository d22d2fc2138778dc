/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Little- and big-endian integers as types, for memory that is shared with
 * the card or with the wire. A value must be read with get() (or through an
 * explicit conversion) and is stored by assignment, so that a missing byte swap
 * does not compile. They have alignment 1 and the size of the integer, and can
 * be laid over any byte of a packet.
 */
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

namespace tern {

static_assert(std::endian::native == std::endian::little, "big-endian hosts are not supported");

/** Reverses the bytes of @v. */
template <std::unsigned_integral T>
constexpr T byteswap(T v) noexcept
{
	if constexpr (sizeof(T) == 1)
		return v;
	else if constexpr (sizeof(T) == 2)
		return __builtin_bswap16(v);
	else if constexpr (sizeof(T) == 4)
		return __builtin_bswap32(v);
	else
		return __builtin_bswap64(v);
}

/** An unsigned integer kept in memory in byte order @Order, at any alignment. */
template <std::unsigned_integral T, std::endian Order>
class Ordered {
public:
	/** Uninitialised, like the integer itself; Ordered{} is zero. */
	Ordered() noexcept = default;
	constexpr Ordered(T v) noexcept : b_{} { *this = v; }

	constexpr Ordered &operator=(T v) noexcept
	{
		if constexpr (Order != std::endian::native)
			v = byteswap(v);
		b_ = std::bit_cast<Bytes>(v);
		return *this;
	}

	/** The value in the order of this CPU. */
	constexpr T get() const noexcept
	{
		const T v = std::bit_cast<T>(b_);
		return Order == std::endian::native ? v : byteswap(v);
	}
	constexpr explicit operator T() const noexcept { return get(); }

	/** The same bytes on both sides, so no swap is needed to compare. */
	friend constexpr bool operator==(const Ordered &a, const Ordered &b) noexcept
	{
		return a.get() == b.get();
	}

private:
	struct Bytes {
		uint8_t raw[sizeof(T)];
	};
	Bytes b_;
};

template <std::unsigned_integral T>
using Le = Ordered<T, std::endian::little>;
template <std::unsigned_integral T>
using Be = Ordered<T, std::endian::big>;

} // namespace tern
