// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/idling.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

/* How often it says no before it says yes. */
unsigned pause(AdaptivePolicy &policy)
{
	unsigned passed = 0;
	while (!policy.should_try())
		passed++;
	return passed;
}

TEST(AdaptivePolicy, GoesOnAsLongAsItPays)
{
	AdaptivePolicy policy;
	EXPECT_EQ(pause(policy), 0);
	for (int i = 0; i < 100; i++) {
		policy.record(true);
		EXPECT_TRUE(policy.should_try());
	}
}

TEST(AdaptivePolicy, EachFailurePausesItTwiceAsLongUpToALimit)
{
	AdaptivePolicy policy;
	unsigned last = 0;
	for (int i = 0; i < 12; i++) {
		ASSERT_TRUE(pause(policy) == last || i == 0);
		policy.record(false);
		last = (2U << i) - 1;
	}
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(pause(policy), 4095);
		policy.record(false);
	}
}

TEST(AdaptivePolicy, ASuccessNowAndThenDoesNotShortenThePause)
{
	AdaptivePolicy policy;
	for (int i = 0; i < 20; i++) {
		pause(policy);
		policy.record(i % 2);
	}
	policy.record(false);
	EXPECT_GT(pause(policy), 1000);
}

TEST(AdaptivePolicy, ManySuccessesInARowDo)
{
	AdaptivePolicy policy;
	for (int i = 0; i < 20; i++)
		policy.record(false);
	for (int i = 0; i < 16; i++)
		policy.record(true);
	policy.record(false);
	EXPECT_EQ(pause(policy), 1);
}

} // namespace
} // namespace tern
