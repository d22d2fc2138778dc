// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/completion_queue.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/host.h"

namespace tern::test {
namespace {

using namespace hw;
using Outcome = CompletionQueue::Outcome;

class CompletionQueueTest : public ::testing::Test {
protected:
	static constexpr unsigned kLog = 2; /* four entries */

	CompletionQueueTest() : tables_(memory_), ring_(memory_, kLog, {1, 12}) {}
	void SetUp() override
	{
		ring_ = {memory_, kLog, {1, 12}};
		record_ = memory_.alloc(64);
		queue_.emplace(place(ring_, record_), 1, 0);
	}
	static CompletionQueue::Place place(const PhaseRing<tern_hw_cqe> &ring, Iova record)
	{
		const uint64_t size = sizeof(tern_hw_cqe) << ring.log_size();
		return {*PageList::make(ring.buffer().pages(), 0, size), record,
		        static_cast<uint8_t>(ring.log_size())};
	}
	Outcome push(uint32_t index, bool solicited = false, uint8_t status = TERN_WC_SUCCESS)
	{
		tern_hw_cqe cqe{};
		cqe.wqe_index = index;
		cqe.status = status;
		return queue_->push(memory_, tables_, cqe, solicited);
	}
	/** Slice by slice. @between: what happens in between. */
	tern_hw_aq_status move_to(const CompletionQueue::Place &to,
	                          const std::function<void()> &between = {})
	{
		for (;;) {
			unsigned budget = 1;
			const auto status = queue_->move_to(memory_, tables_, to, budget);
			if (status)
				return *status;
			EXPECT_EQ(budget, 0u);
			if (between)
				between();
		}
	}
	/** To a new ring and record. */
	tern_hw_aq_status resize(unsigned log_size)
	{
		PhaseRing<tern_hw_cqe> ring(memory_, log_size, {1, 12});
		const Iova record = memory_.alloc(64);
		memory_.put(record, Le<uint32_t>(ring_.ci));
		const auto status = move_to(place(ring, record));
		if (status != TERN_AQ_OK)
			return status;
		ring.ci = ring_.ci;
		ring_ = ring;
		record_ = record;
		return status;
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
	Iova record_ = 0;
	std::optional<CompletionQueue> queue_;
};

/* The phase tells new from old, many times around. */
TEST_F(CompletionQueueTest, ManyTimesAround)
{
	for (uint32_t i = 0; i < 50; i += 3) {
		for (uint32_t j = 0; j < 3; j++)
			EXPECT_EQ(push(i + j), Outcome::Done);
		for (uint32_t j = 0; j < 3; j++)
			EXPECT_EQ(poll(), i + j);
		EXPECT_FALSE(poll());
	}
}

/* One more than there is room for: failed once, dead from then on, and nothing is overwritten. */
TEST_F(CompletionQueueTest, Overrun)
{
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(push(i), Outcome::Done);
	EXPECT_EQ(push(4), Outcome::Failed);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(poll(), i);
	EXPECT_EQ(push(5), Outcome::Dead);
	EXPECT_FALSE(poll());
}

TEST_F(CompletionQueueTest, RingNotReachable)
{
	memory_.fault(ring_.buffer().at(0), 4096);
	EXPECT_EQ(push(0), Outcome::Failed);
}

/* A consumer index that cannot be is not believed. */
TEST_F(CompletionQueueTest, ImpossibleConsumerIndex)
{
	for (uint32_t i = 0; i < 4; i++)
		push(i);
	memory_.put(record_, Le<uint32_t>(77u));
	EXPECT_EQ(push(4), Outcome::Failed);
}

TEST_F(CompletionQueueTest, ArmedAnyOnce)
{
	EXPECT_EQ(queue_->arm(0, false), Outcome::Done);
	EXPECT_EQ(push(0), Outcome::Event);
	EXPECT_EQ(push(1), Outcome::Done);
}

/* What came before the doorbell counts, unless the host has seen it. */
TEST_F(CompletionQueueTest, ArmAfterwards)
{
	push(0);
	EXPECT_EQ(queue_->arm(0, false), Outcome::Event);
	EXPECT_EQ(queue_->arm(1, false), Outcome::Done);
}

TEST_F(CompletionQueueTest, ArmedSolicited)
{
	EXPECT_EQ(queue_->arm(0, true), Outcome::Done);
	EXPECT_EQ(push(0), Outcome::Done);
	EXPECT_EQ(queue_->arm(0, true), Outcome::Done);
	EXPECT_EQ(push(1, true), Outcome::Event);
	EXPECT_EQ(queue_->arm(1, true), Outcome::Event);
	EXPECT_EQ(queue_->arm(2, true), Outcome::Done);
	/* A failed one always counts. */
	EXPECT_EQ(push(2, false, TERN_WC_WR_FLUSH_ERR), Outcome::Event);
}

/* Any is not narrowed to solicited by a later request (IBA 11.4.2.2). */
TEST_F(CompletionQueueTest, AnyStaysAny)
{
	queue_->arm(0, false);
	queue_->arm(0, true);
	EXPECT_EQ(push(0), Outcome::Event);
}

/* Nor is an event that a request for any completion has waiting. */
TEST_F(CompletionQueueTest, AnyStaysAnyWhileItsEventWaits)
{
	queue_->moderate({.count = 2, .period = 1000});
	queue_->arm(0, false);
	EXPECT_EQ(push(0), Outcome::Later);
	EXPECT_EQ(queue_->arm(0, true), Outcome::Done);
	EXPECT_TRUE(queue_->expire());
}

/*
 * The last solicited CQE may be more than 2^31 CQEs ago, where a signed difference of indices
 * changes its sign. An index as far back stands for so many CQEs here.
 */
TEST_F(CompletionQueueTest, SolicitedLongAgo)
{
	for (uint32_t i = 0; i < 4; i++) {
		push(i);
		EXPECT_EQ(poll(), i);
	}
	EXPECT_EQ(queue_->arm(4 - 0x7fffffff, true), Outcome::Done);
}

/* So many CQEs, or so long; each once for each time that the host asks. */
TEST_F(CompletionQueueTest, Moderation)
{
	EXPECT_EQ(queue_->moderate({.count = 2, .period = 1000}), Outcome::Done);
	EXPECT_EQ(queue_->arm(0, false), Outcome::Done);
	EXPECT_FALSE(queue_->expire());
	EXPECT_EQ(push(0), Outcome::Later);
	EXPECT_EQ(push(1), Outcome::Event);
	EXPECT_FALSE(queue_->expire());

	EXPECT_EQ(queue_->arm(1, false), Outcome::Later) << "one is there already";
	EXPECT_EQ(queue_->arm(1, false), Outcome::Done) << "and the time runs on";
	EXPECT_TRUE(queue_->expire());
	EXPECT_FALSE(queue_->expire());
	EXPECT_EQ(queue_->arm(0, false), Outcome::Event) << "two are";
}

/* A CQE that does not count takes no part. */
TEST_F(CompletionQueueTest, ModerationOfSolicited)
{
	queue_->moderate({.count = 2, .period = 1000});
	queue_->arm(0, true);
	EXPECT_EQ(push(0), Outcome::Done);
	EXPECT_EQ(push(1, true), Outcome::Later);
	EXPECT_EQ(push(2), Outcome::Done);
	EXPECT_EQ(push(3, true), Outcome::Event);
}

TEST_F(CompletionQueueTest, ModerationByTimeAlone)
{
	queue_->moderate({.count = 0, .period = 1000});
	queue_->arm(0, false);
	EXPECT_EQ(push(0), Outcome::Later);
	EXPECT_EQ(push(1), Outcome::Done);
	EXPECT_EQ(push(2), Outcome::Done);
	EXPECT_TRUE(queue_->expire());
}

/* An event that waits does not get stuck, whatever becomes of the moderation. */
TEST_F(CompletionQueueTest, ModerationChanges)
{
	queue_->moderate({.count = 4, .period = 1000});
	queue_->arm(0, false);
	EXPECT_EQ(push(0), Outcome::Later);
	EXPECT_EQ(push(1), Outcome::Done);
	EXPECT_EQ(queue_->moderate({.count = 3, .period = 500}), Outcome::Later);
	EXPECT_EQ(queue_->moderate({.count = 9, .period = 0}), Outcome::Event);
	EXPECT_EQ(queue_->arm(0, false), Outcome::Event);
	EXPECT_FALSE(queue_->expire());
}

/* What was not consumed is there at the same indices, what follows is new only when it comes,
 * for every state that old and new ring can be in. */
TEST_F(CompletionQueueTest, Resize)
{
	for (uint32_t consumed = 0; consumed < 20; consumed++)
		for (uint32_t left = 0; left <= 4; left++)
			for (unsigned log = 2; log <= 8; log++) {
				SCOPED_TRACE(testing::Message() << consumed << " consumed, " << left
				                                << " left, to " << log);
				SetUp();
				for (uint32_t i = 0; i < consumed; i++) {
					EXPECT_EQ(push(i), Outcome::Done);
					EXPECT_EQ(poll(), i);
				}
				for (uint32_t i = 0; i < left; i++)
					EXPECT_EQ(push(consumed + i), Outcome::Done);
				EXPECT_EQ(resize(log), TERN_AQ_OK);
				for (uint32_t i = 0; i < left; i++)
					EXPECT_EQ(poll(), consumed + i);
				for (uint32_t i = consumed + left; i < 600; i++) {
					EXPECT_FALSE(poll());
					EXPECT_EQ(push(i), Outcome::Done);
					EXPECT_EQ(poll(), i);
				}
			}
}

TEST_F(CompletionQueueTest, ResizeToLessThanIsThere)
{
	for (uint32_t i = 0; i < 3; i++)
		push(i);
	EXPECT_EQ(resize(1), TERN_AQ_BAD_STATE);
	EXPECT_EQ(poll(), 0u);
	EXPECT_EQ(resize(1), TERN_AQ_OK);
	EXPECT_EQ(poll(), 1u);
	EXPECT_EQ(poll(), 2u);
	EXPECT_FALSE(poll());
	EXPECT_EQ(push(3), Outcome::Done);
	EXPECT_EQ(push(4), Outcome::Done);
	EXPECT_EQ(push(5), Outcome::Failed);
	EXPECT_EQ(resize(4), TERN_AQ_BAD_STATE) << "it has failed";
}

/* CQEs come while the ring is moved; they are in the new one, too. */
TEST_F(CompletionQueueTest, ResizeWhileCqesCome)
{
	for (uint32_t consumed = 0; consumed < 10; consumed++) {
		SCOPED_TRACE(consumed);
		SetUp();
		for (uint32_t i = 0; i < consumed; i++) {
			EXPECT_EQ(push(i), Outcome::Done);
			EXPECT_EQ(poll(), i);
		}
		push(consumed);
		PhaseRing<tern_hw_cqe> ring(memory_, 8, {1, 12});
		const Iova record = memory_.alloc(64);
		memory_.put(record, Le<uint32_t>(ring_.ci));
		uint32_t next = consumed + 1;
		ASSERT_EQ(move_to(place(ring, record),
		                  [&] {
			                  if (next == consumed + 4)
				                  return;
			                  EXPECT_EQ(push(next++), Outcome::Done);
		                  }),
		          TERN_AQ_OK);
		ring.ci = ring_.ci;
		for (uint32_t i = consumed; i < consumed + 4; i++)
			EXPECT_EQ(ring.poll()->wqe_index.get(), i);
		EXPECT_FALSE(ring.poll());
	}
}

/* The host is told that the new ring is too small, and the CQ stays where it is. */
TEST_F(CompletionQueueTest, ResizeWhileMoreCqesComeThanFit)
{
	ring_ = {memory_, 9, {1, 12}};
	queue_.emplace(place(ring_, record_), 1, 0);
	uint32_t next = 0;
	const auto push_some = [&] {
		for (int i = 0; i < 50; i++)
			EXPECT_EQ(push(next++), Outcome::Done);
	};
	push_some();
	PhaseRing<tern_hw_cqe> ring(memory_, 7, {1, 12});
	EXPECT_EQ(move_to(place(ring, memory_.alloc(64)), push_some), TERN_AQ_BAD_STATE);
	EXPECT_GT(next, 128u);
	for (uint32_t i = 0; i < next; i++)
		EXPECT_EQ(poll(), i);
}

/* Neither ring is given up when the other cannot be reached. */
TEST_F(CompletionQueueTest, ResizeFaults)
{
	push(0);
	PhaseRing<tern_hw_cqe> away(memory_, 3, {1, 12});
	memory_.fault(away.buffer().at(0), 4096);
	EXPECT_EQ(move_to(place(away, record_)), TERN_AQ_DMA_FAULT);
	EXPECT_EQ(push(1), Outcome::Done);
	EXPECT_EQ(poll(), 0u);
	EXPECT_EQ(poll(), 1u);
}

} // namespace
} // namespace tern::test
