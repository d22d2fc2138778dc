// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/completion_queue.h"

#include <gtest/gtest.h>

#include "tests/support/host.h"

namespace tern::test {
namespace {

using namespace hw;
using Push = CompletionQueue::Push;

class CompletionQueueTest : public ::testing::Test {
protected:
	static constexpr unsigned kLog = 2; /* four entries */

	CompletionQueueTest()
	        : tables_(memory_), ring_(memory_, kLog, {1, 12}), record_(memory_.alloc(64))
	{
		queue_.emplace(
		        *PageList::make(ring_.buffer().pages(), 0, sizeof(tern_hw_cqe) << kLog),
		        kLog, record_, 1, 0);
	}
	Push push(uint32_t index, bool solicited = false, uint8_t status = TERN_WC_SUCCESS)
	{
		tern_hw_cqe cqe{};
		cqe.wqe_index = index;
		cqe.status = status;
		return queue_->push(memory_, tables_, cqe, solicited);
	}
	std::optional<uint32_t> poll()
	{
		const auto cqe = ring_.poll();
		if (!cqe)
			return std::nullopt;
		memory_.put(record_, Le<uint32_t>(ring_.ci));
		return cqe->wqe_index.get();
	}

	FakeMemory memory_;
	TableCache tables_;
	PhaseRing<tern_hw_cqe> ring_;
	Iova record_;
	std::optional<CompletionQueue> queue_;
};

/* The phase tells new from old, many times around. */
TEST_F(CompletionQueueTest, ManyTimesAround)
{
	for (uint32_t i = 0; i < 50; i += 3) {
		for (uint32_t j = 0; j < 3; j++)
			EXPECT_EQ(push(i + j), Push::Done);
		for (uint32_t j = 0; j < 3; j++)
			EXPECT_EQ(poll(), i + j);
		EXPECT_FALSE(poll());
	}
}

/* One more than there is room for: failed once, dead from then on, and nothing is overwritten. */
TEST_F(CompletionQueueTest, Overrun)
{
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(push(i), Push::Done);
	EXPECT_EQ(push(4), Push::Failed);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(poll(), i);
	EXPECT_EQ(push(5), Push::Dead);
	EXPECT_FALSE(poll());
}

TEST_F(CompletionQueueTest, RingNotReachable)
{
	memory_.fault(ring_.buffer().at(0), 4096);
	EXPECT_EQ(push(0), Push::Failed);
}

/* A consumer index that cannot be is not believed. */
TEST_F(CompletionQueueTest, ImpossibleConsumerIndex)
{
	for (uint32_t i = 0; i < 4; i++)
		push(i);
	memory_.put(record_, Le<uint32_t>(77u));
	EXPECT_EQ(push(4), Push::Failed);
}

TEST_F(CompletionQueueTest, ArmedAnyOnce)
{
	EXPECT_FALSE(queue_->arm(0, false));
	EXPECT_EQ(push(0), Push::Event);
	EXPECT_EQ(push(1), Push::Done);
}

/* What came before the doorbell counts, unless the host has seen it. */
TEST_F(CompletionQueueTest, ArmAfterwards)
{
	push(0);
	EXPECT_TRUE(queue_->arm(0, false));
	EXPECT_FALSE(queue_->arm(1, false));
}

TEST_F(CompletionQueueTest, ArmedSolicited)
{
	EXPECT_FALSE(queue_->arm(0, true));
	EXPECT_EQ(push(0), Push::Done);
	EXPECT_FALSE(queue_->arm(0, true));
	EXPECT_EQ(push(1, true), Push::Event);
	EXPECT_TRUE(queue_->arm(1, true));
	EXPECT_FALSE(queue_->arm(2, true));
	/* A failed one always counts. */
	EXPECT_EQ(push(2, false, TERN_WC_WR_FLUSH_ERR), Push::Event);
}

/* Any is not narrowed to solicited by a later request (IBA 11.4.2.2). */
TEST_F(CompletionQueueTest, AnyStaysAny)
{
	queue_->arm(0, false);
	queue_->arm(0, true);
	EXPECT_EQ(push(0), Push::Event);
}

} // namespace
} // namespace tern::test
