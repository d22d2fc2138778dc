// SPDX-License-Identifier: GPL-2.0-or-later
/* The reaction point by itself. tests/model has the whole trajectory of a rate. */
#include "qemu/rnic/congestion/dcqcn.h"

#include <gtest/gtest.h>

#include <memory>

namespace tern::test {
namespace {

constexpr uint64_t kUs = 1000;
constexpr uint32_t kLink = 40'000;          /* Mb/s */
constexpr uint64_t kLine = kLink * 1000ull; /* kb/s */

class DcqcnTest : public ::testing::Test {
protected:
	DcqcnTest() { p_.rp_byte_reset = 0; }

	CongestionParameters p_ = sigcomm2015();
	Dcqcn flow_{p_, kLink};
};

TEST_F(DcqcnTest, NothingLimitsAFlowWithoutCnps)
{
	EXPECT_EQ(flow_.rate(0), kLine);
	flow_.on_sent(10 * kUs, 1 << 20);
	EXPECT_EQ(flow_.rate(1'000'000'000), kLine);
	EXPECT_EQ(flow_.next_change(), UINT64_MAX);
}

TEST_F(DcqcnTest, TheFirstCnpHalvesTheRate)
{
	flow_.on_cnp(100 * kUs);
	EXPECT_NEAR(flow_.rate(100 * kUs), kLine / 2, kLine / 1000);
	EXPECT_EQ(flow_.next_change(), 155 * kUs);
}

TEST_F(DcqcnTest, TheFirstCnpSetsTheRateThatIsAskedFor)
{
	p_.rp_rate_to_set_on_first_cnp = 1000;
	flow_.on_cnp(0);
	EXPECT_NEAR(flow_.rate(0), 500'000, 1000);
	flow_.on_cnp(100 * kUs);
	EXPECT_LT(flow_.rate(100 * kUs), 500'000u);
}

TEST_F(DcqcnTest, FastRecoveryHalvesTheDistanceToTheTarget)
{
	flow_.on_cnp(0);
	double rate = static_cast<double>(flow_.rate(0));
	for (unsigned i = 1; i <= p_.rp_threshold; i++) {
		EXPECT_EQ(flow_.rate(55 * kUs * i - 1), static_cast<uint64_t>(rate));
		rate = (rate + kLine) / 2;
		EXPECT_NEAR(static_cast<double>(flow_.rate(55 * kUs * i)), rate, 1);
	}
}

TEST_F(DcqcnTest, AdditiveIncreaseAfterFastRecovery)
{
	flow_.on_cnp(0);
	flow_.on_cnp(100 * kUs); /* the target is below the line rate now */
	const uint64_t fast = 100 * kUs + p_.rp_threshold * 55 * kUs;
	const uint64_t before = flow_.rate(fast);
	/* After some increases the rate follows the target, 40 Mb/s each time. */
	const uint64_t a = flow_.rate(fast + 20 * 55 * kUs);
	const uint64_t b = flow_.rate(fast + 21 * 55 * kUs);
	EXPECT_GT(a, before);
	EXPECT_NEAR(static_cast<double>(b - a), 40'000, 10);
}

TEST_F(DcqcnTest, HyperIncreaseWhenTimerAndCounterHavePassedTheThreshold)
{
	p_.rp_byte_reset = 1000;
	p_.rp_time_reset = 10'000;
	flow_.on_cnp(0);
	flow_.on_cnp(100 * kUs);
	for (unsigned i = 0; i < 30; i++) /* additive: the timer is at 0 */
		flow_.on_sent(200 * kUs, 1000);
	const uint64_t before = flow_.rate(200 * kUs);
	flow_.on_sent(200 * kUs, 1000);
	EXPECT_NEAR(static_cast<double>(flow_.rate(200 * kUs) - before), 40'000, 10);

	const uint64_t later = 100 * kUs + 6 * 10'000 * kUs; /* the timer's 6th */
	const uint64_t additive = flow_.rate(later - 1);
	EXPECT_GT(flow_.rate(later), additive + 200'000 / 2);
}

TEST_F(DcqcnTest, BytesIncreaseTheRate)
{
	p_.rp_byte_reset = 10'000;
	flow_.on_cnp(0);
	const uint64_t rate = flow_.rate(0);
	flow_.on_sent(kUs, 9'999);
	EXPECT_EQ(flow_.rate(kUs), rate);
	flow_.on_sent(kUs, 1);
	EXPECT_NEAR(static_cast<double>(flow_.rate(kUs)), (rate + kLine) / 2.0, 1);
	/* Two at once. */
	flow_.on_sent(kUs, 20'000);
	EXPECT_NEAR(static_cast<double>(flow_.rate(kUs)), kLine - (kLine - rate) / 8.0, 2);
}

TEST_F(DcqcnTest, AlphaDecaysWithoutCnps)
{
	flow_.on_cnp(0);
	/* (1 - g)^n: after 256 periods about 1/e is left, so a reduction by 0.18. */
	const uint64_t later = 256 * 55 * kUs;
	const auto rate = static_cast<double>(flow_.rate(later));
	flow_.on_cnp(later);
	EXPECT_NEAR(static_cast<double>(flow_.rate(later)) / rate, 1 - 0.367 / 2, 0.001);
}

TEST_F(DcqcnTest, OneReductionInAPeriod)
{
	flow_.on_cnp(0);
	const uint64_t rate = flow_.rate(0);
	flow_.on_cnp(4 * kUs - 1);
	EXPECT_EQ(flow_.rate(4 * kUs - 1), rate);
	flow_.on_cnp(4 * kUs);
	EXPECT_LT(flow_.rate(4 * kUs), rate);
}

TEST_F(DcqcnTest, NeverBelowTheLeastRate)
{
	p_.rp_min_rate = 10;
	for (uint64_t i = 0; i < 100; i++)
		flow_.on_cnp(50 * kUs * i);
	EXPECT_EQ(flow_.rate(50 * kUs * 99), 10'000u);
}

TEST_F(DcqcnTest, NoReductionBelowTheLeastFactor)
{
	p_.rp_min_dec_fac = 80;
	flow_.on_cnp(0);
	EXPECT_NEAR(flow_.rate(0), 0.8 * kLine, 1);
}

TEST_F(DcqcnTest, TheTargetStaysUntilTheRateHasRisen)
{
	p_.rp_clamp_tgt_rate = 0;
	p_.rp_clamp_tgt_rate_ati = 0;
	flow_.on_cnp(0);
	flow_.on_cnp(20 * kUs);
	const auto low = static_cast<double>(flow_.rate(20 * kUs));
	EXPECT_NEAR(static_cast<double>(flow_.rate(75 * kUs)), (low + kLine) / 2, 1);
	/* An increase by the timer alone does not count. */
	flow_.on_cnp(80 * kUs);
	const auto again = static_cast<double>(flow_.rate(80 * kUs));
	EXPECT_NEAR(static_cast<double>(flow_.rate(135 * kUs)), (again + kLine) / 2, 1);
	/* One by the counter does. */
	p_.rp_byte_reset = 1000;
	flow_.on_sent(140 * kUs, 1000);
	const auto target = static_cast<double>(flow_.rate(140 * kUs));
	flow_.on_cnp(150 * kUs);
	const auto reduced = static_cast<double>(flow_.rate(150 * kUs));
	EXPECT_NEAR(static_cast<double>(flow_.rate(205 * kUs)), (reduced + target) / 2, 2);
}

TEST_F(DcqcnTest, AFlowThatHasRecoveredIsFree)
{
	p_.rp_ai_rate = 1000;
	flow_.on_cnp(0);
	const uint64_t later = 1'000'000 * kUs;
	EXPECT_EQ(flow_.rate(later), kLine);
	EXPECT_EQ(flow_.next_change(), UINT64_MAX);
	/* Alpha has decayed, so the next CNP hardly reduces the rate. */
	flow_.on_cnp(later);
	EXPECT_NEAR(static_cast<double>(flow_.rate(later)), kLine, kLine / 1000.0);
}

TEST_F(DcqcnTest, TheHighestRateIsTheLeastOfLinkAndParameter)
{
	EXPECT_EQ(max_rate(p_, kLink), kLine);
	p_.rp_max_rate = 1000;
	EXPECT_EQ(max_rate(p_, kLink), 1'000'000u);
	EXPECT_EQ(flow_.rate(0), 1'000'000u);
	p_.rp_max_rate = 2 * kLink;
	EXPECT_EQ(max_rate(p_, kLink), kLine);
}

/* The reduction starts from the new highest rate: half of the rate from before is still above it.
 */
TEST_F(DcqcnTest, ACnpHalvesALoweredHighestRate)
{
	flow_.on_cnp(0);
	p_.rp_max_rate = 1000;
	EXPECT_EQ(flow_.rate(10 * kUs), 1'000'000u);
	flow_.on_cnp(20 * kUs);
	EXPECT_NEAR(static_cast<double>(flow_.rate(20 * kUs)), 500'000, 50'000);
	EXPECT_EQ(flow_.next_change(), 75 * kUs);
}

/* Fast recovery leads to the new highest rate, not to the former target. */
TEST_F(DcqcnTest, ALoweredHighestRateBoundsTheTarget)
{
	flow_.on_cnp(0);
	p_.rp_max_rate = 1000;
	p_.rp_clamp_tgt_rate = 0;
	flow_.on_cnp(20 * kUs);
	const auto low = static_cast<double>(flow_.rate(20 * kUs));
	EXPECT_LT(low, 1'000'000);
	EXPECT_NEAR(static_cast<double>(flow_.rate(75 * kUs)), (low + 1'000'000) / 2, 1);
}

TEST(CongestionParametersTest, DefaultsAreValid)
{
	EXPECT_TRUE(are_valid(CongestionParameters()));
	EXPECT_TRUE(are_valid(sigcomm2015()));
}

TEST(CongestionParametersTest, ValuesOutOfRangeAreRefused)
{
	CongestionParameters p;
	p.rp_time_reset = 0;
	EXPECT_FALSE(are_valid(p));
	p = {};
	p.np_cnp_dscp = 64;
	EXPECT_FALSE(are_valid(p));
	p = {};
	p.rp_algorithm = 9;
	EXPECT_FALSE(are_valid(p));
}

TEST(CongestionParametersTest, NoControllerForNone)
{
	CongestionParameters p;
	EXPECT_NE(make_controller(p, kLink), nullptr);
	p.rp_algorithm = static_cast<uint32_t>(CongestionAlgorithm::None);
	EXPECT_EQ(make_controller(p, kLink), nullptr);
}

} // namespace
} // namespace tern::test
