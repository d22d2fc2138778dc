// SPDX-License-Identifier: GPL-2.0-or-later
#include "datapath/tag_queue.h"

#include <cerrno>

#include "datapath/work_request.h"
#include "queue_fixture.h"

namespace tern::provider::test {

class TagQueueTest : public QueueFixture {
protected:
	static constexpr uint32_t kOps = 4, kEntries = 3, kSrqn = 0x4321;

	TagQueueTest() { EXPECT_EQ(queue_.init(config()), 0); }

	TagQueue::Config config()
	{
		return {.ring = {ring_.bytes, kOps * sizeof(tern_hw_tag_op)},
		        .entries = kEntries,
		        .srqn = kSrqn,
		        .doorbells = DoorbellPage(doorbells_.bytes)};
	}
	uint64_t doorbell() const
	{
		uint64_t value;
		std::memcpy(&value, doorbells_.bytes + TERN_DB_TAG_OPS, sizeof(value));
		return value;
	}
	static uint64_t rung(uint32_t pi) { return kSrqn | uint64_t{pi} << TERN_DB_INDEX_SHIFT; }

	/* Operation @n, as the card reads it. */
	tern_hw_tag_op op(uint32_t n) const
	{
		tern_hw_tag_op op;
		std::memcpy(&op, ring_.bytes + (n % kOps) * sizeof(op), sizeof(op));
		return op;
	}

	ibv_ops_wr add_wr(uint64_t tag, int flags = IBV_OPS_SIGNALED)
	{
		ibv_ops_wr wr = {};
		wr.wr_id = 100 + tag;
		wr.opcode = IBV_WR_TAG_ADD;
		wr.flags = flags;
		wr.tm.add.recv_wr_id = 200 + tag;
		wr.tm.add.sg_list = &sge_;
		wr.tm.add.num_sge = 1;
		wr.tm.add.tag = tag;
		wr.tm.add.mask = 0xffff;
		return wr;
	}
	static ibv_ops_wr del_wr(uint32_t handle, int flags = IBV_OPS_SIGNALED)
	{
		ibv_ops_wr wr = {};
		wr.wr_id = 300 + handle;
		wr.opcode = IBV_WR_TAG_DEL;
		wr.flags = flags;
		wr.tm.handle = handle;
		return wr;
	}
	static ibv_ops_wr sync_wr(uint32_t count)
	{
		ibv_ops_wr wr = {};
		wr.wr_id = 400;
		wr.opcode = IBV_WR_TAG_SYNC;
		wr.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
		wr.tm.unexpected_cnt = count;
		return wr;
	}
	int post(ibv_ops_wr wr) { return post(&wr); }
	int post(ibv_ops_wr *wr)
	{
		bad_ = nullptr;
		return post_ops_list(queue_, wr, &bad_);
	}
	uint32_t add(uint64_t tag, int flags = IBV_OPS_SIGNALED)
	{
		ibv_ops_wr wr = add_wr(tag, flags);
		EXPECT_EQ(post(&wr), 0);
		return wr.tm.handle;
	}

	ibv_sge sge_ = {0x1000, 64, 0x700};
	ibv_ops_wr *bad_ = nullptr;
	TagQueue queue_;
};

TEST_F(TagQueueTest, Add)
{
	const uint32_t handle = add(7);
	const tern_hw_tag_op o = op(0);
	EXPECT_EQ(o.opcode, TERN_TAG_ADD);
	EXPECT_EQ(o.flags, TERN_TAG_SIGNALED);
	EXPECT_EQ(o.entry.get(), handle);
	EXPECT_EQ(o.tag.get(), 7u);
	EXPECT_EQ(o.mask.get(), 0xffffu);
	EXPECT_EQ(o.buf.addr.get(), 0x1000u);
	EXPECT_EQ(o.buf.length.get(), 64u);
	EXPECT_EQ(o.buf.lkey.get(), 0x700u);
	EXPECT_EQ(o.unexpected.get(), 0u);
	EXPECT_EQ(doorbell(), rung(1));
	EXPECT_EQ(queue_.complete(0, true), 107u);
	EXPECT_EQ(queue_.receive(handle, false), 207u) << "the match";
	EXPECT_EQ(queue_.receive(handle, true), 207u) << "the end";
}

TEST_F(TagQueueTest, WithoutBuffer)
{
	ibv_ops_wr wr = add_wr(7, 0);
	wr.tm.add.num_sge = 0;
	EXPECT_EQ(post(wr), 0);
	EXPECT_EQ(op(0).flags, 0);
	EXPECT_EQ(op(0).buf.addr.get() | op(0).buf.length.get() | op(0).buf.lkey.get(), 0u);
}

TEST_F(TagQueueTest, DelAndSync)
{
	EXPECT_EQ(post(del_wr(2)), 0);
	EXPECT_EQ(op(0).opcode, TERN_TAG_DEL);
	EXPECT_EQ(op(0).entry.get(), 2u);
	EXPECT_EQ(post(sync_wr(9)), 0);
	EXPECT_EQ(op(1).opcode, TERN_TAG_SYNC);
	EXPECT_EQ(op(1).flags, TERN_TAG_SIGNALED | TERN_TAG_COUNT);
	EXPECT_EQ(op(1).unexpected.get(), 9u);
}

/* One doorbell for a list; what could not be posted is told, what came before it is posted. */
TEST_F(TagQueueTest, Lists)
{
	ibv_ops_wr last = add_wr(3);
	last.tm.add.num_sge = 2;
	ibv_ops_wr second = add_wr(2);
	second.next = &last;
	ibv_ops_wr first = sync_wr(0);
	first.next = &second;
	EXPECT_EQ(post(&first), EINVAL);
	EXPECT_EQ(bad_, &last);
	EXPECT_EQ(doorbell(), rung(2));
	forget_doorbells();
	EXPECT_EQ(post(&last), EINVAL);
	EXPECT_EQ(doorbell(), kNoDoorbell);
}

TEST_F(TagQueueTest, Refused)
{
	EXPECT_EQ(post(del_wr(kEntries)), EINVAL);
	ibv_ops_wr wr = sync_wr(0);
	wr.flags = 1 << 2;
	EXPECT_EQ(post(wr), EINVAL);
	wr = sync_wr(0);
	wr.opcode = static_cast<ibv_ops_wr_opcode>(3);
	EXPECT_EQ(post(wr), EINVAL);
	wr = add_wr(0);
	wr.tm.add.num_sge = -1;
	EXPECT_EQ(post(wr), EINVAL);
	wr.tm.add.num_sge = 1;
	wr.tm.add.sg_list = nullptr;
	EXPECT_EQ(post(wr), EINVAL);
	EXPECT_EQ(doorbell(), kNoDoorbell);
	for (uint32_t i = 0; i < kEntries; i++)
		add(i); /* each entry is still free */
}

/* Operations are free again when a completion tells of one at or after them. */
TEST_F(TagQueueTest, FullRing)
{
	uint32_t done = 0;
	for (uint32_t i = 0; i < kOps; i++)
		EXPECT_EQ(post(sync_wr(i)), 0);
	for (int round = 0; round < 5; round++) {
		EXPECT_EQ(post(sync_wr(0)), ENOMEM);
		done += 3;
		EXPECT_EQ(queue_.complete(done - 1, true), 400u);
		for (int i = 0; i < 3; i++)
			EXPECT_EQ(post(sync_wr(0)), 0);
	}
}

TEST_F(TagQueueTest, FullList)
{
	for (uint32_t i = 0; i < kEntries; i++)
		EXPECT_EQ(add(i), i);
	EXPECT_EQ(post(add_wr(9)), ENOMEM);
	queue_.receive(1, false);
	EXPECT_EQ(post(add_wr(9)), ENOMEM) << "its data is still coming";
	queue_.receive(1, true);
	EXPECT_EQ(add(9), 1u);
}

TEST_F(TagQueueTest, DeletedEntriesAreFree)
{
	for (uint32_t i = 0; i < kEntries; i++)
		add(i);
	queue_.complete(2, true);
	EXPECT_EQ(post(del_wr(0)), 0);
	EXPECT_EQ(post(del_wr(1)), 0);
	EXPECT_EQ(post(del_wr(2, 0)), 0);
	EXPECT_EQ(queue_.complete(3, true), 300u);
	EXPECT_EQ(add(9), 0u);
	/* One that was matched meanwhile is free only when the message has come. */
	EXPECT_EQ(queue_.complete(4, false), 301u);
	EXPECT_EQ(post(add_wr(9)), ENOMEM);
	/* The third has no completion, so it went well. */
	EXPECT_EQ(queue_.complete(6, true), 109u);
	EXPECT_EQ(add(9), 2u);
	queue_.receive(1, true);
	EXPECT_EQ(add(9), 1u);
}

TEST_F(TagQueueTest, EntriesThatWereNotAdded)
{
	EXPECT_EQ(add(0), 0u);
	EXPECT_EQ(queue_.complete(0, false), 100u);
	EXPECT_EQ(add(1), 0u);
}

/* Indices that the card could not have meant do no harm. */
TEST_F(TagQueueTest, NonsenseFromTheCard)
{
	EXPECT_EQ(queue_.receive(kEntries, true), 0u);
	EXPECT_EQ(queue_.receive(~0u, true), 0u);
	add(0);
	queue_.complete(77, true);
	EXPECT_EQ(add(1), 1u);
}

TEST_F(TagQueueTest, Geometry)
{
	auto c = config();
	c.entries = 0;
	EXPECT_EQ(queue_.init(c), EINVAL);
	c = config();
	c.ring = {};
	EXPECT_EQ(queue_.init(c), EINVAL);
	c.ring = {ring_.bytes, 3 * sizeof(tern_hw_tag_op)};
	EXPECT_EQ(queue_.init(c), EINVAL);
	c.ring = {ring_.bytes, 4 * sizeof(tern_hw_tag_op) - 1};
	EXPECT_EQ(queue_.init(c), EINVAL);
}

} // namespace tern::provider::test
