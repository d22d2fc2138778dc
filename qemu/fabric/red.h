/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <random>

namespace tern::fabric {

/** When to mark instead of dropping: by the length of the queue that a frame leaves behind, as the
 * switches of Zhu et al., 2015 do (random early detection without its average). */
struct Red {
	uint64_t kmin = 0; /* bytes; none is marked up to this */
	uint64_t kmax = 0; /* all are marked from here on; 0: none is marked at all */
	double pmax = 1;   /* the share that is marked just below kmax */

	double probability(uint64_t queued) const
	{
		if (!kmax || (queued <= kmin && queued < kmax))
			return 0;
		if (queued >= kmax)
			return 1;
		return pmax * static_cast<double>(queued - kmin) / static_cast<double>(kmax - kmin);
	}
	bool marks(uint64_t queued, std::mt19937_64 &random) const
	{
		const double p = probability(queued);
		/* 53 random bits are a double in [0, 1). */
		return p > 0 && static_cast<double>(random() >> 11) * 0x1p-53 < p;
	}
};

} // namespace tern::fabric
