/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

namespace tern {

/** Packet sequence number: 24 bits, modulo arithmetic (IBA vol. 1, 9.7.1). */
class Psn {
public:
	static constexpr uint32_t kMask = 0xffffff;

	constexpr Psn() = default;
	constexpr explicit Psn(uint32_t value) : value_(value & kMask) {}

	constexpr uint32_t value() const { return value_; }

	constexpr Psn operator+(uint32_t n) const { return Psn(value_ + n); }
	constexpr Psn &operator++()
	{
		value_ = (value_ + 1) & kMask;
		return *this;
	}
	/** Signed distance, negative when *this precedes @other; -2^23 .. 2^23 - 1. */
	constexpr int32_t operator-(Psn other) const
	{
		return static_cast<int32_t>((value_ - other.value_) << 8) >> 8;
	}
	constexpr bool operator==(const Psn &) const = default;

private:
	uint32_t value_ = 0;
};

} // namespace tern
