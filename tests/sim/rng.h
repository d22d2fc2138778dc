/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tern::sim {

/** Makes all choices of a simulation: from a seed (SplitMix64), for which they are the same
 * everywhere, or from a script of bytes, which a fuzzer supplies. */
class Rng {
public:
	explicit Rng(uint64_t seed) : state_(seed) {}
	/** Each number takes from @script as few bytes as it needs, so that a change of one byte
	 * changes one choice. All numbers are zero when it is used up. @script must outlive this.
	 */
	explicit Rng(std::span<const std::byte> script) : scripted_(true), script_(script) {}

	/** Whether a script is used up. */
	bool exhausted() const { return scripted_ && script_.empty(); }

	uint64_t next()
	{
		if (scripted_)
			return take(sizeof(uint64_t));
		uint64_t z = state_ += 0x9e3779b97f4a7c15;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
		z = (z ^ z >> 27) * 0x94d049bb133111eb;
		return z ^ z >> 31;
	}
	/** 0 .. @n - 1. */
	uint64_t below(uint64_t n)
	{
		if (scripted_)
			return take((std::bit_width(n - 1) + 7u) / 8) % n;
		return next() % n;
	}
	/** @low .. @high, both among them. */
	uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
	/** True @n times out of @of. */
	bool chance(uint64_t n, uint64_t of) { return below(of) < n; }
	void fill(std::span<std::byte> bytes)
	{
		uint64_t word = 0;
		for (size_t i = 0; i < bytes.size(); i++) {
			word = i % sizeof(word) ? word >> 8 : next();
			bytes[i] = static_cast<std::byte>(word);
		}
	}
	/** A generator of its own, so that one part's use does not shift another's. */
	Rng fork() { return Rng(next()); }

private:
	/** The next @size bytes of the script as a number. */
	uint64_t take(size_t size)
	{
		uint64_t value = 0;
		for (const std::byte b : script_.first(std::min(size, script_.size())))
			value = value << 8 | std::to_integer<uint64_t>(b);
		script_ = script_.subspan(std::min(size, script_.size()));
		return value;
	}

	uint64_t state_ = 0;
	bool scripted_ = false;
	std::span<const std::byte> script_;
};

} // namespace tern::sim
