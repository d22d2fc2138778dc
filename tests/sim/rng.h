/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern::sim {

/** Random numbers that are the same everywhere for the same seed (SplitMix64). */
class Rng {
public:
	explicit Rng(uint64_t seed) : state_(seed) {}

	uint64_t next()
	{
		uint64_t z = state_ += 0x9e3779b97f4a7c15;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
		z = (z ^ z >> 27) * 0x94d049bb133111eb;
		return z ^ z >> 31;
	}
	/** 0 .. @n - 1. */
	uint64_t below(uint64_t n) { return next() % n; }
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
	uint64_t state_;
};

} // namespace tern::sim
