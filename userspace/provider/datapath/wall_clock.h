// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>

#include <time.h>

#include "datapath/doorbell.h"

namespace tern::provider {

/**
 * Tells the time of day at which the card's clock had a value. The card counts nanoseconds but
 * knows no date, so we keep the distance of CLOCK_REALTIME, and measure it again when a time comes
 * that is kMaxAge after the last measurement: by then the time of day, which is slewed by 500 ppm
 * at most, has moved 50 us away. Its jumps are followed after that time, too. A measurement is a
 * read of the card between two looks at CLOCK_REALTIME, and as wrong as half of what it took: we
 * take the shortest of a few, as any of them can be interrupted.
 */
class WallClock {
public:
	/** CLOCK_REALTIME in ns when the clock behind @page was @card_ns. */
	uint64_t at(uint64_t card_ns, const DoorbellPage &page)
	{
		if (!measured_ || static_cast<int64_t>(card_ns - measured_at_) >= kMaxAge)
			measure(page);
		return card_ns + distance_;
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
			distance_ = before + took / 2 - card_ns;
		}
		measured_ = true;
	}

	bool measured_ = false;
	uint64_t measured_at_ = 0; /* by the card's clock */
	uint64_t distance_ = 0;    /* modulo 2^64 */
};

} // namespace tern::provider
