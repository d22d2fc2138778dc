// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>

#include <time.h>

#include "datapath/doorbell.h"

namespace tern::provider {

/**
 * Converts values of the card's clock, which counts nanoseconds, to CLOCK_REALTIME by a measured
 * offset. Measures it again kMaxAge after the last time: slewing, of 500 ppm at most, has then
 * added an error of 50 us at most, and a step of CLOCK_REALTIME is followed. A measurement reads
 * the card's clock between two reads of CLOCK_REALTIME, with an error of at most half its duration.
 * Of kTries, any of which an interrupt can lengthen, the shortest counts.
 */
class WallClock {
public:
	/** CLOCK_REALTIME in ns when the card's clock, read through @page, was @card_ns. */
	uint64_t at(uint64_t card_ns, const DoorbellPage &page)
	{
		if (!measured_ || static_cast<int64_t>(card_ns - measured_at_) >= kMaxAge)
			measure(page);
		return card_ns + offset_;
	}

private:
	static constexpr int64_t kMaxAge = 100'000'000; /* ns */
	static constexpr int kTries = 3;

	static uint64_t now()
	{
		timespec t;
		clock_gettime(CLOCK_REALTIME, &t);
		return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 +
		       static_cast<uint64_t>(t.tv_nsec);
	}

	void measure(const DoorbellPage &page)
	{
		uint64_t shortest = UINT64_MAX;

		for (int i = 0; i < kTries; i++) {
			const uint64_t before = now();
			const uint64_t card_ns = page.clock();
			const uint64_t took = now() - before;
			if (took > shortest)
				continue;
			shortest = took;
			measured_at_ = card_ns;
			offset_ = before + took / 2 - card_ns;
		}
		measured_ = true;
	}

	bool measured_ = false;
	uint64_t measured_at_ = 0; /* value of the card's clock */
	uint64_t offset_ = 0;      /* modulo 2^64 */
};

} // namespace tern::provider
