// SPDX-License-Identifier: GPL-2.0-or-later
/* TIMELY by itself: algorithm 2 of the paper of 2016, one completion at a time. */
#include "qemu/rnic/congestion/timely.h"

#include <gtest/gtest.h>

namespace tern::test {
namespace {

constexpr uint64_t kUs = 1000;
constexpr uint32_t kLink = 10'000;
constexpr double kLine = kLink * 1000.0; /* kb/s */

class TimelyTest : public ::testing::Test {
protected:
	TimelyTest() { p_.rp_ai_rate = 10; }

	double rate() { return static_cast<double>(flow_.rate(0)); }
	/** What a round-trip time of @us takes of the rate, as far as the error decides. */
	double error_decrease(double us) const
	{
		return p_.rp_timely_beta / 1024.0 / 32 * (us - p_.rp_timely_t_low) /
		       p_.rp_timely_t_low;
	}

	CongestionParameters p_;
	Timely flow_{p_, kLink};
};

TEST_F(TimelyTest, StartsAtTheLineRate)
{
	EXPECT_EQ(rate(), kLine);
	flow_.on_rtt(10 * kUs);
	EXPECT_EQ(rate(), kLine);
	EXPECT_EQ(flow_.next_change(), UINT64_MAX);
}

TEST_F(TimelyTest, AboveTheHighThresholdTheRateFallsWithTheError)
{
	flow_.on_rtt(600 * kUs);
	EXPECT_NEAR(rate(), kLine * (1 - error_decrease(600)), 1);
}

TEST_F(TimelyTest, OrWithTheExcessIfThatIsMore)
{
	p_.rp_timely_t_low = 400;
	flow_.on_rtt(600 * kUs);
	EXPECT_NEAR(rate(), kLine * (1 - 819 / 1024.0 * (1 - 500 / 600.0)), 1);
}

TEST_F(TimelyTest, BelowTheLowThresholdItRises)
{
	flow_.on_loss();
	flow_.on_rtt(49 * kUs);
	EXPECT_NEAR(rate(), kLine / 2 + 10'000, 1);
	/* Whatever the gradient. */
	flow_.on_rtt(20 * kUs);
	flow_.on_rtt(48 * kUs);
	EXPECT_NEAR(rate(), kLine / 2 + 30'000, 1);
}

TEST_F(TimelyTest, AfterFiveWithoutAPositiveGradientItRisesFaster)
{
	flow_.on_loss();
	double expected = kLine / 2;
	for (unsigned i = 1; i <= 7; i++) {
		flow_.on_rtt(30 * kUs);
		expected += i < 5 ? 10'000 : 50'000;
		EXPECT_NEAR(rate(), expected, 1) << i;
	}
	flow_.on_rtt(40 * kUs); /* ends it */
	EXPECT_NEAR(rate(), expected + 10'000, 1);
}

TEST_F(TimelyTest, AnAbsentGradientIsHalfADecreaseAndHalfAnIncrease)
{
	flow_.on_loss();
	flow_.on_rtt(100 * kUs);
	EXPECT_NEAR(rate(), kLine / 2 * (1 - error_decrease(100) / 2) + 5'000, 1);
}

TEST_F(TimelyTest, TheGradientShiftsTheWeight)
{
	flow_.on_rtt(100 * kUs);
	const double before = rate();
	flow_.on_rtt(104 * kUs);
	/* 4 us, weighed, of 20 us */
	const double gradient = 4.0 / 20 * 896 / 1024;
	const double weight = 0.5 + 2 * gradient;
	EXPECT_NEAR(rate(), before * (1 - weight * error_decrease(104)) + (1 - weight) * 10'000, 1);
}

TEST_F(TimelyTest, ASteepGradientIsAllDecreaseOrAllIncrease)
{
	flow_.on_rtt(100 * kUs);
	double before = rate();
	flow_.on_rtt(200 * kUs);
	EXPECT_NEAR(rate(), before * (1 - error_decrease(200)), 1);
	before = rate();
	flow_.on_rtt(80 * kUs);
	EXPECT_NEAR(rate(), before + 10'000, 1);
}

/* Where increase and decrease are the same: equal round-trip times make equal rates. */
TEST_F(TimelyTest, HasOneFixedPoint)
{
	Timely other{p_, kLink};
	other.on_loss();
	for (int i = 0; i < 20'000; i++) {
		flow_.on_rtt(100 * kUs);
		other.on_rtt(100 * kUs);
	}
	EXPECT_NEAR(rate(), 10'000 / error_decrease(100), 2);
	EXPECT_NEAR(static_cast<double>(other.rate(0)), rate(), 2);
}

/* A second of delay, however steep its rise: an unbounded decrease would leave the least rate. */
TEST_F(TimelyTest, NoCompletionTakesMoreThanHalf)
{
	flow_.on_rtt(100 * kUs);
	for (int i = 0; i < 5; i++) {
		const double before = rate();
		flow_.on_rtt(1'000'000 * kUs);
		EXPECT_GE(rate(), before / 2 - 1);
		flow_.on_rtt(100 * kUs);
	}
}

/* 25 us between two completions would leave nothing by the paper of 2015, and less by more. */
TEST_F(TimelyTest, ASteepRiseOfAShortQueueTakesLittle)
{
	flow_.on_rtt(40 * kUs);
	flow_.on_rtt(80 * kUs);
	EXPECT_NEAR(rate(), kLine * (1 - error_decrease(80)), 1);
	EXPECT_GT(rate(), kLine * 0.98);
}

TEST_F(TimelyTest, ALossTakesHalf)
{
	flow_.on_loss();
	EXPECT_EQ(rate(), kLine / 2);
	/* The round-trip time before it is forgotten: there is no gradient. */
	flow_.on_rtt(400 * kUs);
	EXPECT_NEAR(rate(), kLine / 2 * (1 - error_decrease(400) / 2) + 5'000, 1);
}

TEST_F(TimelyTest, ATimeoutLeavesASixteenth)
{
	flow_.on_timeout();
	EXPECT_EQ(rate(), kLine / 16);
	/* Less than that is halved. */
	flow_.on_timeout();
	EXPECT_EQ(rate(), kLine / 32);
}

TEST_F(TimelyTest, StaysWithinItsLimits)
{
	p_.rp_min_rate = 5;
	for (int i = 0; i < 100; i++)
		flow_.on_rtt(1'000'000 * kUs);
	EXPECT_EQ(rate(), 5000);
	for (int i = 0; i < 10'000; i++)
		flow_.on_rtt(10 * kUs);
	EXPECT_EQ(rate(), kLine);
}

TEST_F(TimelyTest, IsChosenByTheParameter)
{
	p_.rp_algorithm = static_cast<uint32_t>(CongestionAlgorithm::Timely);
	EXPECT_TRUE(are_valid(p_));
	const auto controller = make_controller(p_, kLink);
	controller->on_cnp(0); /* means nothing to it */
	EXPECT_EQ(controller->rate(0), kLine);
	controller->on_rtt(1000 * kUs);
	EXPECT_LT(controller->rate(0), kLine);
}

} // namespace
} // namespace tern::test
