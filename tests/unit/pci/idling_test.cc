// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/pci/idling.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

/* How often it says no before it says yes. */
unsigned pause(Habit &habit)
{
	unsigned passed = 0;
	while (!habit.now())
		passed++;
	return passed;
}

TEST(Habit, GoesOnAsLongAsItPays)
{
	Habit habit;
	EXPECT_EQ(pause(habit), 0);
	for (int i = 0; i < 100; i++) {
		habit.learn(true);
		EXPECT_TRUE(habit.now());
	}
}

TEST(Habit, EachFailurePausesItTwiceAsLongUpToALimit)
{
	Habit habit;
	unsigned last = 0;
	for (int i = 0; i < 12; i++) {
		ASSERT_TRUE(pause(habit) == last || i == 0);
		habit.learn(false);
		last = (2U << i) - 1;
	}
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(pause(habit), 4095);
		habit.learn(false);
	}
}

TEST(Habit, ASuccessNowAndThenDoesNotShortenThePause)
{
	Habit habit;
	for (int i = 0; i < 20; i++) {
		pause(habit);
		habit.learn(i % 2);
	}
	habit.learn(false);
	EXPECT_GT(pause(habit), 1000);
}

TEST(Habit, ManySuccessesInARowDo)
{
	Habit habit;
	for (int i = 0; i < 20; i++)
		habit.learn(false);
	for (int i = 0; i < 16; i++)
		habit.learn(true);
	habit.learn(false);
	EXPECT_EQ(pause(habit), 1);
}

} // namespace
} // namespace tern
