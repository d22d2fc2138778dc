/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace tern {

/**
 * An injected fault, to try drivers and providers with: the card changes some of the entries that
 * it writes for the host, which are CQEs, EQEs and completions of admin commands.
 *
 * The last byte of an entry, its phase, is kept: with another phase the host would not read the
 * entry at all.
 */
class Falsifier {
public:
	/** Changes one of @every entries on average from now on, or none if @every is 0. @seed
	 * seeds the random choice. */
	void start(uint32_t every, uint32_t seed);
	/** Whether the next entry is to be changed. */
	bool due() { return every_ && random_() % every_ == 0; }
	/** Changes @entry and returns the offset of the change in it. */
	size_t change(std::span<std::byte> entry);

private:
	uint32_t every_ = 0;
	std::minstd_rand random_;
};

} // namespace tern
