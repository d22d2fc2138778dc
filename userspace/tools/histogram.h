// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <cstdint>

#include "bpf/shared.h"

namespace tern::tools {

using Buckets = std::array<uint64_t, TERN_LATENCY_BUCKETS>;

/** The least latency that belongs to @bucket, in ns. */
uint64_t bucket_start(uint32_t bucket);

/** How many latencies there are in all. */
uint64_t total(const Buckets &buckets);

/**
 * The latency in ns that @percent of all do not exceed, taken to lie evenly in their bucket; an
 * eighth too large or too small at most. Zero if there are none.
 */
uint64_t percentile(const Buckets &buckets, uint32_t percent);

} // namespace tern::tools
