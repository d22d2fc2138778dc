// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <limits>

#include "qemu/rnic/formats/packet.h"

namespace tern {
namespace {

constexpr uint64_t kUs = 1000;

/* Samples of IBA table 45. */
TEST(RnrTimer, KnownValues)
{
	EXPECT_EQ(rnr_timer_ns(0), 655360 * kUs);
	EXPECT_EQ(rnr_timer_ns(1), 10 * kUs);
	EXPECT_EQ(rnr_timer_ns(4), 40 * kUs);
	EXPECT_EQ(rnr_timer_ns(5), 60 * kUs);
	EXPECT_EQ(rnr_timer_ns(12), 640 * kUs);
	EXPECT_EQ(rnr_timer_ns(20), 10240 * kUs);
	EXPECT_EQ(rnr_timer_ns(31), 491520 * kUs);
}

TEST(RnrTimer, GrowsByAtMostTwo)
{
	for (uint8_t code = 2; code < 32; code++) {
		EXPECT_GT(rnr_timer_ns(code), rnr_timer_ns(code - 1)) << unsigned{code};
		EXPECT_LE(rnr_timer_ns(code), 2 * rnr_timer_ns(code - 1)) << unsigned{code};
	}
}

TEST(RnrTimer, OnlyFiveBitsCount)
{
	EXPECT_EQ(rnr_timer_ns(0x20 | 12), rnr_timer_ns(12));
}

/* Samples of IBA table 46. */
TEST(Credits, KnownValues)
{
	EXPECT_EQ(decode_credits(0), 0u);
	EXPECT_EQ(decode_credits(5), 6u);
	EXPECT_EQ(decode_credits(10), 32u);
	EXPECT_EQ(decode_credits(16), 256u);
	EXPECT_EQ(decode_credits(30), 32768u);
}

TEST(Credits, TheInvalidCodeIsNoLimit)
{
	EXPECT_EQ(decode_credits(kCreditsInvalid), std::numeric_limits<uint32_t>::max());
}

TEST(Credits, RoundTrip)
{
	for (uint8_t code = 0; code < kCreditsInvalid; code++)
		EXPECT_EQ(encode_credits(decode_credits(code)), code);
}

/* A credit too many would let the peer send what no receive WQE waits for. */
TEST(Credits, NeverMoreThanThereAre)
{
	for (uint32_t wqes = 0; wqes < 70000; wqes++) {
		const uint8_t code = encode_credits(wqes);
		ASSERT_LT(code, kCreditsInvalid) << wqes;
		ASSERT_LE(decode_credits(code), wqes);
		ASSERT_TRUE(code == 30 || decode_credits(code + 1) > wqes) << wqes;
	}
	EXPECT_EQ(encode_credits(std::numeric_limits<uint32_t>::max()), 30);
}

} // namespace
} // namespace tern
