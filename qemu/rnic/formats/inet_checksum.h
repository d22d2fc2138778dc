/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Internet checksum (RFC 1071). */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/** The one's complement sum of 16-bit words, in the order of the wire. */
class InetSum {
public:
	InetSum() = default;
	explicit InetSum(uint16_t word) : sum_(word) {}

	/** Adds @bytes; a last odd one stands for itself and a zero. */
	void add(std::span<const std::byte> bytes);
	/** Adds the words of @value. */
	void add(uint32_t value) { sum_ += (value >> 16) + (value & 0xffff); }
	/** Takes them away again. */
	void subtract(uint32_t value) { add(~value); }

	/** 0xffff of what has a right checksum in it. */
	uint16_t folded() const;

private:
	uint64_t sum_ = 0;
};

} // namespace tern
