// SPDX-License-Identifier: GPL-2.0-or-later
#include "datapath/shared_recv_queue.h"

#include <cerrno>
#include <numeric>
#include <set>

#include "queue_fixture.h"

namespace tern::provider::test {

class SharedRecvQueueTest : public QueueFixture {
protected:
	static constexpr uint8_t kLogStride = 5;

	SharedRecvQueueTest() { EXPECT_EQ(srq_.init(buffer(4), 2), 0); }

	/* Slots, ring and record of @entries in the page that is given, or ours. */
	SharedRecvQueue::Buffer buffer(uint32_t entries) { return buffer(entries, ring_, record_); }

	static SharedRecvQueue::Buffer buffer(uint32_t entries, Page &page,
	                                      tern_hw_srq_record &record)
	{
		const size_t slots = size_t{entries} << kLogStride;
		return {
		        .slots = {page.bytes, slots},
		        .ring = {page.bytes + slots, entries * sizeof(__le32)},
		        .record = SrqRecord(&record),
		        .entries = entries,
		        .log_stride = kLogStride,
		};
	}

	/* The slot that entry @n of the ring names, as the card reads it. */
	static uint32_t entry(const Page &page, uint32_t entries, uint32_t n)
	{
		__le32 slot;
		std::memcpy(&slot,
		            page.bytes + (size_t{entries} << kLogStride) +
		                    (n & (entries - 1)) * sizeof(slot),
		            sizeof(slot));
		return slot.get();
	}
	uint32_t entry(uint32_t n) const { return entry(ring_, 4, n); }

	static tern_hw_data_seg first_seg(const Page &page, uint32_t slot)
	{
		tern_hw_data_seg seg;
		std::memcpy(&seg, page.bytes + (size_t{slot} << kLogStride), sizeof(seg));
		return seg;
	}

	int post(uint64_t wr_id)
	{
		const ibv_sge sge = {0x1000 + wr_id, 8, 0x100};
		return srq_.build(wr_id, {&sge, 1});
	}

	alignas(64) tern_hw_srq_record record_{};
	SharedRecvQueue srq_;
};

TEST_F(SharedRecvQueueTest, TheRingNamesTheSlotsInTheOrderOfPosting)
{
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(post(i), 0);
	EXPECT_EQ(record_.pi.get(), 0u) << "not yet the card's";
	srq_.publish();
	EXPECT_EQ(record_.pi.get(), 4u);
	EXPECT_EQ(doorbell(TERN_DB_SQ), kNoDoorbell);

	std::set<uint32_t> slots;
	for (uint32_t i = 0; i < 4; i++) {
		slots.insert(entry(i));
		EXPECT_EQ(first_seg(ring_, entry(i)).addr.get(), 0x1000u + i);
		EXPECT_EQ(srq_.complete(entry(i)), i);
	}
	EXPECT_EQ(slots.size(), 4u);
}

TEST_F(SharedRecvQueueTest, FullUntilAnyWqeCompletes)
{
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(post(i), 0);
	EXPECT_EQ(post(9), ENOMEM);
	/* Not the oldest: QPs share the queue, and their messages end in any order. */
	const uint32_t slot = entry(2);
	EXPECT_EQ(srq_.complete(slot), 2u);
	ASSERT_EQ(post(10), 0);
	EXPECT_EQ(entry(4), slot);
	EXPECT_EQ(post(11), ENOMEM);
}

TEST_F(SharedRecvQueueTest, RoundAndRoundOutOfOrder)
{
	uint32_t pi = 0;
	std::vector<uint32_t> in_flight; /* numbers of posts */
	uint32_t random = 1;

	while (pi < 1000) {
		random = random * 1103515245 + 12345;
		if (in_flight.size() < 4) {
			ASSERT_EQ(post(pi), 0);
			in_flight.push_back(pi++);
			continue;
		}
		EXPECT_EQ(post(0), ENOMEM);
		const size_t which = (random >> 16) % in_flight.size();
		const uint32_t n = in_flight[which];
		/* Its ring entry may be written over only once the card has taken it, and the
		 * card takes them in order, so remember slots by the WQE instead. */
		for (uint32_t slot = 0; slot < 4; slot++) {
			if (first_seg(ring_, slot).addr.get() == 0x1000 + n) {
				EXPECT_EQ(srq_.complete(slot), n);
			}
		}
		in_flight.erase(in_flight.begin() + static_cast<ptrdiff_t>(which));
	}
	srq_.publish();
	EXPECT_EQ(record_.pi.get(), 1000u);
}

TEST_F(SharedRecvQueueTest, Refusals)
{
	const ibv_sge sges[3] = {{1, 1, 1}, {2, 1, 1}, {3, 1, 1}};
	EXPECT_EQ(srq_.build(0, sges), EINVAL);

	SharedRecvQueue bad;
	EXPECT_EQ(bad.init(buffer(3), 2), EINVAL);
	EXPECT_EQ(bad.init(buffer(4), 3), EINVAL) << "does not fit the stride";
	auto b = buffer(4);
	b.ring = b.ring.first(12);
	EXPECT_EQ(bad.init(b, 2), EINVAL);
	b = buffer(4);
	b.slots = {};
	EXPECT_EQ(bad.init(b, 2), EINVAL);

	SharedRecvQueue none;
	EXPECT_EQ(none.build(0, {}), ENOMEM);
}

TEST_F(SharedRecvQueueTest, ListsEndAndEmptyPiecesAreLeftOut)
{
	const ibv_sge list[] = {{0, 0, 0}, {0x20, 2, 0}};
	ASSERT_EQ(srq_.build(1, list), 0);
	const tern_hw_data_seg first = first_seg(ring_, entry(0));
	EXPECT_EQ(first.addr.get(), 0x20u);
	EXPECT_NE(first.lkey.get(), TERN_LKEY_END);
	EXPECT_EQ(segment<tern_hw_data_seg>(2 * entry(0) + 1).lkey.get(), TERN_LKEY_END);
}

/* ---- moving to a larger buffer -------------------------------------------------------------- */

class SrqMoveTest : public SharedRecvQueueTest {
protected:
	/* Does what the driver does before the provider moves. */
	void copy_by_driver(uint32_t pi)
	{
		std::memcpy(larger_.bytes, ring_.bytes, size_t{4} << kLogStride);
		for (uint32_t n = pi - 4; n != pi; n++) {
			const __le32 slot = entry(n);
			std::memcpy(larger_.bytes + (size_t{16} << kLogStride) +
			                    (n & 15) * sizeof(slot),
			            &slot, sizeof(slot));
		}
		larger_record_.pi = pi;
		std::memset(ring_.bytes, 0xdd, sizeof(ring_.bytes));
	}

	int move(const SharedRecvQueue::Buffer &to)
	{
		auto slots = srq_.make_slots(to.entries);
		return srq_.move(to, slots);
	}

	Page larger_;
	alignas(64) tern_hw_srq_record larger_record_{};
};

TEST_F(SrqMoveTest, WhatIsPostedCompletesAndTheNewSlotsAreUsed)
{
	for (uint64_t i = 0; i < 3; i++)
		ASSERT_EQ(post(i), 0);
	srq_.publish();
	EXPECT_EQ(srq_.complete(entry(0)), 0u);
	copy_by_driver(3);
	ASSERT_EQ(move(buffer(16, larger_, larger_record_)), 0);

	for (uint64_t i = 3; i < 17; i++)
		ASSERT_EQ(post(i), 0) << i;
	EXPECT_EQ(post(17), ENOMEM) << "14 and the two from before";
	srq_.publish();
	EXPECT_EQ(larger_record_.pi.get(), 17u);
	EXPECT_EQ(record_.pi.get(), 3u);
	for (uint32_t i = 1; i < 17; i++) {
		const uint32_t slot = entry(larger_, 16, i);
		EXPECT_EQ(first_seg(larger_, slot).addr.get(), 0x1000u + i);
		EXPECT_EQ(srq_.complete(slot), i);
	}
}

TEST_F(SrqMoveTest, AFullQueueMovesToo)
{
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(post(i), 0);
	copy_by_driver(4);
	ASSERT_EQ(move(buffer(16, larger_, larger_record_)), 0);
	for (uint64_t i = 4; i < 16; i++)
		ASSERT_EQ(post(i), 0);
	EXPECT_EQ(post(16), ENOMEM);
}

TEST_F(SrqMoveTest, NonsenseIsRefusedAndAClosedQueueTakesNothing)
{
	EXPECT_EQ(move(buffer(4)), EINVAL) << "not larger";
	auto b = buffer(16, larger_, larger_record_);
	b.log_stride = 6;
	EXPECT_EQ(move(b), EINVAL);
	b = buffer(16, larger_, larger_record_);
	b.slots = b.slots.first(64);
	EXPECT_EQ(move(b), EINVAL);

	ASSERT_EQ(post(1), 0);
	srq_.close();
	EXPECT_EQ(post(2), ENOMEM);
	EXPECT_EQ(srq_.complete(entry(0)), 1u) << "what is on its way still ends";
	EXPECT_EQ(post(2), ENOMEM);
}

} // namespace tern::provider::test
