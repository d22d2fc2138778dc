// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/placement.h"

#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace tern {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

using Cpus = std::vector<uint32_t>;

/* Where this thread may run. */
Cpus allowed()
{
	cpu_set_t set;
	EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	Cpus cpus;
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set))
			cpus.push_back(cpu);
	}
	return cpus;
}

void pin(uint32_t cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	EXPECT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

class PlacementTest : public testing::Test {
protected:
	/* For what becomes of the thread. */
	static void in_thread(const std::function<void()> &what) { std::thread(what).join(); }

	const Cpus all = allowed();
	uint64_t now = 1000 * kMillisecond;
};

TEST_F(PlacementTest, JoinsAndLeaves)
{
	in_thread([&] {
		Placement placement;
		placement.join(all.back(), now);
		EXPECT_EQ(allowed(), Cpus{all.back()});
		placement.leave(now + 50 * kMillisecond);
		EXPECT_EQ(allowed(), Cpus{all.back()});
		placement.join(all.back(), now + 90 * kMillisecond);
		placement.leave(now + 150 * kMillisecond);
		EXPECT_EQ(allowed(), Cpus{all.back()}) << "it has joined again";
		placement.leave(now + 250 * kMillisecond);
		EXPECT_EQ(allowed(), all);
	});
}

TEST_F(PlacementTest, DoesNotFollowAllTheTime)
{
	if (all.size() < 2)
		GTEST_SKIP() << "one processor";
	in_thread([&] {
		Placement placement;
		placement.join(all[0], now);
		placement.join(all[1], now + kMillisecond / 2);
		EXPECT_EQ(allowed(), Cpus{all[0]});
		placement.join(all[1], now + 2 * kMillisecond);
		EXPECT_EQ(allowed(), Cpus{all[1]});
	});
}

TEST_F(PlacementTest, StaysWhereItMayRun)
{
	in_thread([&] {
		pin(all.front());
		Placement placement;
		for (const uint32_t cpu : {all.back() + 1, uint32_t{CPU_SETSIZE}, ~0u})
			placement.join(cpu, now);
		if (all.size() > 1)
			placement.join(all.back(), now);
		EXPECT_EQ(allowed(), Cpus{all.front()});
	});
}

TEST_F(PlacementTest, SomebodyElsesChoiceStands)
{
	if (all.size() < 2)
		GTEST_SKIP() << "one processor";
	in_thread([&] {
		Placement placement;
		placement.join(all[0], now);
		pin(all[1]);
		placement.join(all[0], now + 2 * kMillisecond);
		placement.join(all[1], now + 4 * kMillisecond);
		placement.leave(now + 1000 * kMillisecond);
		EXPECT_EQ(allowed(), Cpus{all[1]});
	});
	in_thread([&] {
		Placement placement;
		pin(all[1]);
		placement.join(all[0], now);
		placement.join(all[0], now + 2 * kMillisecond);
		EXPECT_EQ(allowed(), Cpus{all[1]});
	});
}

TEST_F(PlacementTest, KnowsWhenThereIsNoProcessorToSpare)
{
	const Placement placement;
	EXPECT_FALSE(placement.crowded(all.size() - 1));
	EXPECT_TRUE(placement.crowded(all.size()));
}

} // namespace
} // namespace tern
