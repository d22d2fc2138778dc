// SPDX-License-Identifier: GPL-2.0-or-later
/* TIMELY by itself: algorithm 1 of the paper, one completion at a time. */
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
	/** Halves the rate of a flow about that nothing is known. */
	void slow_down()
	{
		p_.rp_timely_beta = 1024;
		flow_.on_rtt(2 * p_.rp_timely_t_high * kUs);
		p_.rp_timely_beta = 819;
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

TEST_F(TimelyTest, AboveTheHighThresholdTheRateFallsWithTheExcess)
{
	flow_.on_rtt(1000 * kUs); /* twice T_high: 1 - beta / 2 */
	EXPECT_NEAR(rate(), kLine * (1 - 819 / 1024.0 / 2), 1);
}

TEST_F(TimelyTest, BelowTheLowThresholdItRises)
{
	slow_down();
	flow_.on_rtt(49 * kUs);
	EXPECT_NEAR(rate(), kLine / 2 + 10'000, 1);
	/* Whatever the gradient. */
	flow_.on_rtt(20 * kUs);
	flow_.on_rtt(48 * kUs);
	EXPECT_NEAR(rate(), kLine / 2 + 30'000, 1);
}

TEST_F(TimelyTest, APositiveGradientLowersTheRate)
{
	flow_.on_rtt(100 * kUs);
	EXPECT_EQ(rate(), kLine);
	flow_.on_rtt(104 * kUs);
	/* 4 us, weighed, of 20 us */
	const double gradient = 4.0 / 20 * 896 / 1024;
	EXPECT_NEAR(rate(), kLine * (1 - 819 / 1024.0 * gradient), 1);
}

TEST_F(TimelyTest, WithoutAPositiveGradientItRisesAndThenFaster)
{
	slow_down();
	flow_.on_rtt(300 * kUs); /* far below the one before */
	double expected = kLine / 2 + 10'000;
	EXPECT_NEAR(rate(), expected, 1);
	for (unsigned i = 2; i <= 7; i++) {
		flow_.on_rtt(300 * kUs);
		expected += i < 5 ? 10'000 : 50'000;
		EXPECT_NEAR(rate(), expected, 1) << i;
	}
	flow_.on_rtt(400 * kUs); /* ends it */
	const double lower = rate();
	EXPECT_LT(lower, expected);
	for (int i = 0; i < 30; i++) /* the smoothed difference comes down */
		flow_.on_rtt(400 * kUs - i * kUs);
	EXPECT_GT(rate(), lower);
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
