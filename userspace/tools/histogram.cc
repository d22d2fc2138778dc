// SPDX-License-Identifier: GPL-2.0-or-later
#include "histogram.h"

#include <numeric>

namespace tern::tools {

uint64_t bucket_start(uint32_t bucket)
{
	if (bucket < 2 * TERN_LATENCY_PER_POWER)
		return bucket;
	const uint32_t shift = bucket / TERN_LATENCY_PER_POWER - 1;
	return uint64_t{bucket % TERN_LATENCY_PER_POWER + TERN_LATENCY_PER_POWER} << shift;
}

uint64_t total(const Buckets &buckets)
{
	return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0});
}

uint64_t percentile(const Buckets &buckets, uint32_t percent)
{
	const uint64_t rank = (total(buckets) * percent + 99) / 100;
	uint64_t before = 0;

	for (uint32_t i = 0; i < buckets.size(); i++) {
		if (buckets[i] && before + buckets[i] >= rank) {
			const uint64_t start = bucket_start(i);
			const uint64_t width = bucket_start(i + 1) - start;
			return start + width * (rank - before) / buckets[i];
		}
		before += buckets[i];
	}
	return 0;
}

} // namespace tern::tools
