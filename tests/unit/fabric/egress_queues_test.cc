// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/egress_queues.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace tern::fabric {
namespace {

struct Fixture : ::testing::Test {
	void push(EgressQueues &queues, uint8_t priority, size_t size = 100, uint64_t now = 0)
	{
		const std::vector<std::byte> bytes(size);
		queues.push(pool.make(bytes, priority), now);
	}
	/** Takes all frames that may be sent, and returns their priorities. */
	static std::vector<int> order(EgressQueues &queues, uint8_t held = 0)
	{
		std::vector<int> all;
		while (const FramePtr frame = queues.pop(held, 0))
			all.push_back(frame->priority);
		return all;
	}

	FramePool pool;
};
using EgressQueuesTest = Fixture;

TEST_F(EgressQueuesTest, WithoutWeightsTheHighestGoesFirst)
{
	EgressQueues queues({});
	for (const uint8_t priority : {0, 5, 3, 5})
		push(queues, priority);
	EXPECT_EQ(order(queues), (std::vector{5, 5, 3, 0}));
}

TEST_F(EgressQueuesTest, HeldOnesWait)
{
	EgressQueues queues({});
	push(queues, 5);
	push(queues, 3);
	EXPECT_EQ(order(queues, 1 << 5), (std::vector{3}));
	EXPECT_EQ(queues.bytes(5), 100u);
	EXPECT_EQ(order(queues), (std::vector{5}));
}

TEST_F(EgressQueuesTest, WeightsShareBytesNotFrames)
{
	EgressQueues queues({1, 3});
	for (int i = 0; i < 4000; i++) {
		push(queues, 0, 1500);
		push(queues, 1, 500);
		push(queues, 1, 500);
		push(queues, 1, 500);
	}
	std::array<uint64_t, 2> bytes{};
	while (bytes[0] + bytes[1] < 4'000'000) {
		const FramePtr frame = queues.pop(0, 0);
		bytes[frame->priority] += frame->size;
	}
	EXPECT_NEAR(static_cast<double>(bytes[1]) / static_cast<double>(bytes[0]), 3, 0.02);
}

TEST_F(EgressQueuesTest, ZeroWeightComesBeforeWeights)
{
	EgressQueues queues({1, 1, 0});
	for (const uint8_t priority : {1, 0, 2})
		push(queues, priority);
	EXPECT_EQ(order(queues)[0], 2);
}

/* What a queue did not use while it was empty or held is not saved up. */
TEST_F(EgressQueuesTest, AnIdleQueueSavesNothing)
{
	EgressQueues queues({1, 1});
	for (int i = 0; i < 100; i++)
		push(queues, 0, 1518);
	EXPECT_EQ(order(queues).size(), 100u);
	for (int i = 0; i < 10; i++) {
		push(queues, 0, 1518);
		push(queues, 1, 1518);
	}
	int first[2]{};
	for (int i = 0; i < 10; i++)
		first[queues.pop(0, 0)->priority]++;
	EXPECT_NEAR(first[0], first[1], 1);
}

TEST_F(EgressQueuesTest, Counters)
{
	EgressQueues queues({});
	push(queues, 1, 100, 0);
	push(queues, 1, 300, 10);
	queues.pop(0, 30);
	EXPECT_EQ(queues.byte_ns(1, 40), 100u * 10 + 400 * 20 + 300 * 10);
	queues.pop(0, 40);
	const EgressQueues::Stats &stats = queues.stats(1);
	EXPECT_EQ(stats.frames, 2u);
	EXPECT_EQ(stats.bytes, 400u);
	EXPECT_EQ(stats.max_bytes, 400u);
	EXPECT_EQ(queues.byte_ns(1, 50), 100u * 10 + 400 * 20 + 300 * 10);
	EXPECT_EQ(pool.used(), 0u);
}

} // namespace
} // namespace tern::fabric
