// SPDX-License-Identifier: GPL-2.0-or-later
#include "histogram.h"

#include <gtest/gtest.h>

using namespace tern::tools;

namespace {

TEST(Histogram, EachLatencyIsInTheBucketThatHoldsIt)
{
	for (uint64_t ns = 0; ns < 100'000'000'000; ns += 1 + ns / 7) {
		const uint32_t bucket = tern_latency_bucket(ns);
		EXPECT_LE(bucket_start(bucket), ns);
		EXPECT_GT(bucket_start(bucket + 1), ns);
	}
}

TEST(Histogram, BucketsAreAnEighthWide)
{
	for (uint32_t bucket = 2 * TERN_LATENCY_PER_POWER; bucket < TERN_LATENCY_BUCKETS;
	     bucket++) {
		const uint64_t width = bucket_start(bucket + 1) - bucket_start(bucket);
		EXPECT_LE(width * TERN_LATENCY_PER_POWER, bucket_start(bucket));
	}
}

TEST(Histogram, TheLastBucketHasTheRest)
{
	EXPECT_EQ(tern_latency_bucket(UINT64_MAX), TERN_LATENCY_BUCKETS - 1);
	EXPECT_GT(bucket_start(TERN_LATENCY_BUCKETS - 1), 100'000'000'000u);
}

TEST(Histogram, Percentiles)
{
	Buckets buckets{};

	EXPECT_EQ(percentile(buckets, 50), 0u);
	for (uint64_t us = 1; us <= 1000; us++)
		buckets[tern_latency_bucket(us * 1000)]++;
	EXPECT_EQ(total(buckets), 1000u);
	EXPECT_NEAR(static_cast<double>(percentile(buckets, 50)), 500e3, 500e3 / 8);
	EXPECT_NEAR(static_cast<double>(percentile(buckets, 99)), 990e3, 990e3 / 8);
}

} // namespace
