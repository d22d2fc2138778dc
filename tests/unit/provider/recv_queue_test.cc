// SPDX-License-Identifier: GPL-2.0-or-later
#include "datapath/recv_queue.h"

#include <cerrno>

#include "queue_fixture.h"

namespace tern::provider::test {

class RecvQueueTest : public QueueFixture {
protected:
	RecvQueue::Config rq_config(uint32_t entries, uint8_t log_stride, uint32_t max_sge)
	{
		return {
		        .ring = {ring_.bytes, size_t{entries} << log_stride},
		        .record = QpRecord(&qp_record_),
		        .entries = entries,
		        .log_stride = log_stride,
		        .max_sge = max_sge,
		};
	}
};

TEST_F(RecvQueueTest, ListsEndWhereTheStrideDoesNot)
{
	RecvQueue rq;
	ASSERT_EQ(rq.init(rq_config(4, 6, 4)), 0);
	const ibv_sge list[] = {{0x10, 1, 0xa00}, {0x20, 0, 0}, {0x30, 3, 0}, {0x40, 4, 0xd00}};
	const ibv_sge full[] = {{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {4, 1, 1}};

	ASSERT_EQ(rq.build(1, list), 0);
	ASSERT_EQ(rq.build(2, full), 0);
	ASSERT_EQ(rq.build(3, {}), 0);

	/* The empty piece is left out, the key 0 is not mistaken for the end. */
	EXPECT_EQ(segment<tern_hw_data_seg>(0).addr.get(), 0x10u);
	EXPECT_EQ(segment<tern_hw_data_seg>(0).length.get(), 1u);
	EXPECT_EQ(segment<tern_hw_data_seg>(0).lkey.get(), 0xa00u);
	EXPECT_EQ(segment<tern_hw_data_seg>(1).addr.get(), 0x30u);
	EXPECT_NE(segment<tern_hw_data_seg>(1).lkey.get(), TERN_LKEY_END);
	EXPECT_NE(segment<tern_hw_data_seg>(1).lkey.get(), TERN_LKEY_LOCAL_DMA);
	EXPECT_NE(segment<tern_hw_data_seg>(1).lkey.get(), TERN_LKEY_NULL)
	        << "which would discard the data";
	EXPECT_EQ(segment<tern_hw_data_seg>(1).lkey.get() >> 8, 0u) << "an index no region has";
	EXPECT_EQ(segment<tern_hw_data_seg>(2).lkey.get(), 0xd00u);
	EXPECT_EQ(segment<tern_hw_data_seg>(3).lkey.get(), TERN_LKEY_END);

	EXPECT_EQ(segment<tern_hw_data_seg>(7).addr.get(), 4u) << "no end after a full list";
	EXPECT_EQ(segment<tern_hw_data_seg>(8).lkey.get(), TERN_LKEY_END);
}

TEST_F(RecvQueueTest, PublishesWithoutDoorbell)
{
	RecvQueue rq;
	ASSERT_EQ(rq.init(rq_config(4, 4, 1)), 0);

	ASSERT_EQ(rq.build(1, {}), 0);
	ASSERT_EQ(rq.build(2, {}), 0);
	EXPECT_EQ(qp_record_.rq_pi.get(), 0u);
	rq.publish();
	EXPECT_EQ(qp_record_.rq_pi.get(), 2u);
	EXPECT_EQ(bytes(0, 0), std::vector<uint8_t>());
	EXPECT_EQ(doorbell(TERN_DB_SQ), kNoDoorbell);
}

TEST_F(RecvQueueTest, FullUntilACompletionAndRoundAndRound)
{
	RecvQueue rq;
	ASSERT_EQ(rq.init(rq_config(2, 5, 2)), 0);

	ASSERT_EQ(rq.build(100, {}), 0);
	ASSERT_EQ(rq.build(101, {}), 0);
	for (uint32_t i = 0; i < 100; i++) {
		EXPECT_EQ(rq.build(0, {}), ENOMEM);
		EXPECT_EQ(rq.complete(i), 100u + i);
		ASSERT_EQ(rq.build(102 + i, {}), 0);
	}
}

TEST_F(RecvQueueTest, Refusals)
{
	RecvQueue rq;
	ASSERT_EQ(rq.init(rq_config(2, 5, 1)), 0);
	const ibv_sge two[] = {{1, 1, 1}, {2, 1, 1}};
	EXPECT_EQ(rq.build(0, two), EINVAL);

	RecvQueue none;
	ASSERT_EQ(none.init({.ring = {}, .record = QpRecord(&qp_record_)}), 0);
	EXPECT_EQ(none.build(0, {}), ENOMEM);

	RecvQueue bad;
	EXPECT_EQ(bad.init(rq_config(3, 5, 1)), EINVAL);
	EXPECT_EQ(bad.init(rq_config(2, 5, 3)), EINVAL) << "does not fit the stride";
	EXPECT_EQ(bad.init(rq_config(2, 3, 0)), EINVAL);
}

TEST_F(RecvQueueTest, ResetStartsAnew)
{
	RecvQueue rq;
	ASSERT_EQ(rq.init(rq_config(2, 4, 1)), 0);
	ASSERT_EQ(rq.build(1, {}), 0);
	ASSERT_EQ(rq.build(2, {}), 0);
	rq.reset();
	ASSERT_EQ(rq.build(3, {}), 0);
	EXPECT_EQ(rq.complete(0), 3u);
}

} // namespace tern::provider::test
