// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "qemu/rnic/timers.h"

namespace tern {
namespace {

constexpr TimerOwner qp(uint32_t number)
{
	return {TimerOwner::Kind::Qp, number};
}

TEST(TimerQueue, Empty)
{
	TimerQueue queue;
	EXPECT_FALSE(queue.next());
	EXPECT_FALSE(queue.pop_due(UINT64_MAX));
}

TEST(TimerQueue, DueWhenItsTimeHasCome)
{
	TimerQueue queue;
	Timer timer;
	queue.move(qp(1), timer, 100);
	EXPECT_EQ(queue.next(), 100u);
	EXPECT_FALSE(queue.pop_due(99));
	EXPECT_EQ(queue.pop_due(100), qp(1));
	EXPECT_EQ(timer.deadline, Timer::kNone);
	EXPECT_FALSE(queue.next());
}

TEST(TimerQueue, EqualDeadlinesInOrderOfOwner)
{
	TimerQueue queue;
	std::array<Timer, 5> timers;
	for (const uint32_t i : {3u, 0u, 4u, 1u, 2u})
		queue.move(qp(i), timers[i], 7);
	for (uint32_t i = 0; i < timers.size(); i++)
		EXPECT_EQ(queue.pop_due(7), qp(i));
}

/* As a sorted set would have it, whatever is moved and taken out. */
TEST(TimerQueue, AnyOrderOfMoves)
{
	TimerQueue queue;
	std::vector<Timer> timers(200);
	std::set<std::pair<uint64_t, TimerOwner>> model;
	std::mt19937 random(1);
	const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
	for (uint64_t now = 0; now < 20000; now++) {
		const uint32_t i = below(static_cast<uint32_t>(timers.size()));
		const uint64_t deadline = below(4) ? now + below(300) : Timer::kNone;
		model.erase({timers[i].deadline, qp(i)});
		queue.move(qp(i), timers[i], deadline);
		if (deadline != Timer::kNone)
			model.emplace(deadline, qp(i));
		ASSERT_EQ(timers[i].deadline, deadline);
		while (const auto due = queue.pop_due(now)) {
			ASSERT_FALSE(model.empty());
			ASSERT_LE(model.begin()->first, now);
			ASSERT_EQ(*due, model.begin()->second);
			model.erase(model.begin());
		}
		ASSERT_EQ(queue.next().has_value(), !model.empty());
		if (!model.empty()) {
			ASSERT_EQ(*queue.next(), model.begin()->first);
			ASSERT_GT(*queue.next(), now);
		}
	}
}

} // namespace
} // namespace tern
