/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Internet checksum (RFC 1071). */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/** A one's complement sum of 16-bit words in wire order. */
class InetSum {
public:
	InetSum() = default;
	explicit InetSum(uint16_t word) : sum_(word) {}

	/** Adds @bytes; an odd last byte is padded with a zero. */
	void add(std::span<const std::byte> bytes);
	/** Adds the two 16-bit words of @value. */
	void add(uint32_t value) { sum_ += (value >> 16) + (value & 0xffff); }
	/** Subtracts the words of @value. */
	void subtract(uint32_t value) { add(~value); }

	/** The folded sum; 0xffff over data that includes a correct checksum. */
	uint16_t folded() const;

private:
	uint64_t sum_ = 0;
};

} // namespace tern
