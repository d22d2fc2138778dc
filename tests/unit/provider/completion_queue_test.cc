// SPDX-License-Identifier: GPL-2.0-or-later
#include "datapath/completion_queue.h"

#include "datapath/shared_recv_queue.h"
#include "queue_fixture.h"

namespace tern::provider::test {

constexpr uint32_t kQpn = 0x123456;

/* A CQ of four entries, a send queue and a receive queue that complete to it. */
class CompletionQueueTest : public QueueFixture {
protected:
	static constexpr uint32_t kEntries = 4;

	CompletionQueueTest()
	{
		EXPECT_EQ(cq_.init(cq_config(cqes_, &cq_record_)), 0);
		make_sq(sq_, 64);
		EXPECT_EQ(rq_.init({.ring = {rq_ring_.bytes, 64 * 16},
		                    .record = QpRecord(&qp_record_),
		                    .entries = 64,
		                    .log_stride = 4,
		                    .max_sge = 1}),
		          0);
		EXPECT_TRUE(qps_.reserve(kQpn));
		qps_.insert(kQpn, {&sq_, &cq_}, {&rq_, &cq_}, {});
	}

	CompletionQueue::Config cq_config(tern_hw_cqe *cqes, tern_hw_cq_record *record)
	{
		return {
		        .buffer = {.ring = {reinterpret_cast<std::byte *>(cqes),
		                            kEntries * sizeof(*cqes)},
		                   .record = CqRecord(record)},
		        .doorbells = DoorbellPage(doorbells_.bytes),
		        .cqn = 0x77,
		        .qps = &qps_,
		        .srqs = &srqs_,
		        .plain_srqs = &plain_srqs_,
		};
	}

	/* What the card does for completion number @n of the ring. */
	static void card_completes(tern_hw_cqe *cqes, uint32_t n, uint32_t qpn, uint8_t opcode,
	                           uint32_t wqe_index, uint8_t status = TERN_WC_SUCCESS)
	{
		tern_hw_cqe &cqe = cqes[n % kEntries];
		cqe.wqe_index = wqe_index;
		cqe.byte_len = 1000 + wqe_index;
		cqe.imm = 0x01020304;
		cqe.timestamp = 5;
		cqe.qpn = qpn;
		cqe.opcode = opcode;
		cqe.status = status;
		cqe.flags = TERN_CQE_IMM;
		cqe.phase = n / kEntries % 2 ? 0 : TERN_PHASE;
	}

	void post_sends(uint64_t first_wr_id, unsigned n)
	{
		while (n--) {
			SendRequest r;
			r.wr_id = first_wr_id++;
			ASSERT_EQ(sq_.build(r, {}), 0);
		}
		sq_.publish();
	}

	/* A poll for @count completions. */
	void poll(unsigned count)
	{
		while (count-- && cq_.next(c_))
			continue;
		cq_.release();
	}

	Page rq_ring_;
	alignas(64) tern_hw_cqe cqes_[kEntries]{};
	alignas(64) tern_hw_cq_record cq_record_{};
	QpTable qps_;
	SrqTable srqs_;
	PlainSrqTable plain_srqs_;
	CompletionQueue cq_;
	SendQueue sq_;
	RecvQueue rq_;
	Completion c_{};
};

TEST_F(CompletionQueueTest, AFreshRingIsEmpty)
{
	EXPECT_FALSE(cq_.next(c_));
}

TEST_F(CompletionQueueTest, SendAndReceiveCompletionsFindTheirRequests)
{
	post_sends(10, 3);
	ASSERT_EQ(rq_.build(20, {}), 0);
	card_completes(cqes_, 0, kQpn, TERN_OP_SEND, 1);
	card_completes(cqes_, 1, kQpn, TERN_CQE_RECV, 0);
	card_completes(cqes_, 2, kQpn, TERN_OP_SEND, 2, TERN_WC_RETRY_EXC_ERR);

	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 11u);
	EXPECT_EQ(c_.qpn, kQpn);
	EXPECT_EQ(c_.opcode, TERN_OP_SEND);
	EXPECT_EQ(c_.status, TERN_WC_SUCCESS);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 20u);
	EXPECT_EQ(c_.byte_len, 1000u);
	EXPECT_EQ(c_.imm.get(), 0x01020304u);
	EXPECT_EQ(c_.timestamp, 5u);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 12u);
	EXPECT_EQ(c_.status, TERN_WC_RETRY_EXC_ERR);
	EXPECT_FALSE(cq_.next(c_));
}

TEST_F(CompletionQueueTest, ThePhaseFollowsManyPasses)
{
	for (uint32_t n = 0; n < 10 * kEntries; n++) {
		post_sends(n, 1);
		EXPECT_FALSE(cq_.next(c_)) << n;
		card_completes(cqes_, n, kQpn, TERN_OP_SEND, n);
		ASSERT_TRUE(cq_.next(c_)) << n;
		EXPECT_EQ(c_.wr_id, n);
	}
}

TEST_F(CompletionQueueTest, AFullRingIsReadOnce)
{
	post_sends(0, 2 * kEntries);
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < kEntries; i++)
			card_completes(cqes_, pass * kEntries + i, kQpn, TERN_OP_SEND,
			               pass * kEntries + i);
		for (uint32_t i = 0; i < kEntries; i++)
			ASSERT_TRUE(cq_.next(c_));
		EXPECT_FALSE(cq_.next(c_));
	}
}

TEST_F(CompletionQueueTest, ConsumedEntriesGoBackOnRelease)
{
	post_sends(0, 2);
	card_completes(cqes_, 0, kQpn, TERN_OP_SEND, 0);
	card_completes(cqes_, 1, kQpn, TERN_OP_SEND, 1);
	ASSERT_TRUE(cq_.next(c_));
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(cq_record_.ci.get(), 0u);
	cq_.release();
	EXPECT_EQ(cq_record_.ci.get(), 2u);
}

TEST_F(CompletionQueueTest, ArmingTellsFromWhereOn)
{
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u);
	post_sends(0, 1);
	card_completes(cqes_, 0, kQpn, TERN_OP_SEND, 0);
	ASSERT_TRUE(cq_.next(c_));
	cq_.arm(true);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | TERN_DB_CQ_SOLICITED | uint64_t{1} << 32);
}

/* UCX arms and sleeps, without a poll between. */
TEST_F(CompletionQueueTest, ArmingIsForCqesThatCameAfterTheLastEvent)
{
	post_sends(0, 3);
	cq_.arm(false);
	card_completes(cqes_, 0, kQpn, TERN_OP_SEND, 0);
	poll(2);
	card_completes(cqes_, 1, kQpn, TERN_OP_SEND, 1);
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{1} << 32) << "it had no event";
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{2} << 32) << "now it had one";
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{2} << 32) << "that is yet to come";
	poll(1);
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{2} << 32);
}

TEST_F(CompletionQueueTest, TheFirstArmingIsForAllThatIsNotPolled)
{
	post_sends(0, 3);
	for (uint32_t i = 0; i < 3; i++)
		card_completes(cqes_, i, kQpn, TERN_OP_SEND, i);
	poll(1);
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{1} << 32);
}

TEST_F(CompletionQueueTest, ArmingAFullRing)
{
	post_sends(0, kEntries);
	for (uint32_t i = 0; i < kEntries; i++)
		card_completes(cqes_, i, kQpn, TERN_OP_SEND, i);
	for (uint32_t i = 0; i <= kEntries; i++) {
		cq_.arm(false);
		EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{i} << 32);
	}
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{kEntries} << 32);
}

/* A program that polls only some of the CQEs gets one more event for the others. */
TEST_F(CompletionQueueTest, APollThatLeavesCqes)
{
	cq_.arm(false);
	post_sends(0, kEntries);
	for (uint32_t i = 0; i < kEntries; i++)
		card_completes(cqes_, i, kQpn, TERN_OP_SEND, i);
	cq_.arm(false);
	poll(4);
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{4} << 32);
}

/* perftest's latency tests arm, poll one, and take each event for a completion. */
TEST_F(CompletionQueueTest, ACqeRaisesOneEvent)
{
	cq_.arm(false);
	for (uint32_t i = 0; i < 2 * kEntries; i++) {
		post_sends(i, 1);
		card_completes(cqes_, i, kQpn, TERN_OP_SEND, i);
		cq_.arm(false);
		EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{i + 1} << 32);
		poll(1);
	}
}

/* The event for it may be yet to come. */
TEST_F(CompletionQueueTest, AModeratedCqIsArmedFromWhatIsNotPolled)
{
	post_sends(0, 1);
	cq_.arm(false);
	card_completes(cqes_, 0, kQpn, TERN_OP_SEND, 0);
	cq_.set_moderated(true);
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u);
	cq_.set_moderated(false);
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{1} << 32);
}

/* Its event was for one of those that are there, or for none. */
TEST_F(CompletionQueueTest, ArmingAfterARequestForSolicitedCqes)
{
	post_sends(0, 2);
	cq_.arm(true);
	card_completes(cqes_, 0, kQpn, TERN_OP_SEND, 0);
	card_completes(cqes_, 1, kQpn, TERN_OP_SEND, 1);
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u);
}

TEST_F(CompletionQueueTest, UnknownQpsArePassedOver)
{
	post_sends(1, 1);
	card_completes(cqes_, 0, 0xfffff0, TERN_OP_SEND, 0);
	card_completes(cqes_, 1, kQpn + 1, TERN_CQE_RECV, 0);
	card_completes(cqes_, 2, kQpn, TERN_OP_SEND, 0);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 1u);
	cq_.release();
	EXPECT_EQ(cq_record_.ci.get(), 3u) << "their room is given back too";
}

TEST_F(CompletionQueueTest, DroppedCompletionsDoNotReachTheNextQpOfThatNumber)
{
	post_sends(1, 2);
	card_completes(cqes_, 0, kQpn, TERN_OP_SEND, 0);
	card_completes(cqes_, 1, kQpn + 1, TERN_OP_SEND, 0);
	card_completes(cqes_, 2, kQpn, TERN_CQE_RECV, 0);
	EXPECT_TRUE(qps_.remove(kQpn, &sq_));
	cq_.drop_qp(kQpn);

	SendQueue other;
	make_sq(other, 4);
	SendRequest r;
	r.wr_id = 50;
	ASSERT_EQ(other.build(r, {}), 0);
	qps_.insert(kQpn, {&other, &cq_}, {}, {});
	qps_.insert(kQpn + 1, {&sq_, &cq_}, {}, {});

	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.qpn, kQpn + 1) << "that of the other QP is still there";
	EXPECT_FALSE(cq_.next(c_));
	card_completes(cqes_, 3, kQpn, TERN_OP_SEND, 0);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 50u);
}

/* A WQE that the card could not make sense of completes with whatever its first byte was. */
TEST_F(CompletionQueueTest, FailedCompletionsMayHaveAnyOpcode)
{
	post_sends(1, 1);
	card_completes(cqes_, 0, kQpn, 0, 0, TERN_WC_LOC_QP_OP_ERR);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 1u);
	EXPECT_EQ(c_.status, TERN_WC_LOC_QP_OP_ERR);
}

TEST_F(CompletionQueueTest, DropInAFullRingEnds)
{
	post_sends(0, kEntries);
	for (uint32_t i = 0; i < kEntries; i++)
		card_completes(cqes_, i, kQpn, TERN_OP_SEND, i);
	cq_.drop_qp(kQpn);
	EXPECT_FALSE(cq_.next(c_));
}

/* A new QP may then use all of the ring, though nobody polls. */
TEST_F(CompletionQueueTest, DroppedCompletionsGiveTheirRoomBack)
{
	post_sends(0, 2 * kEntries);
	for (uint32_t i = 0; i < kEntries; i++)
		card_completes(cqes_, i, kQpn, TERN_OP_SEND, i);
	cq_.drop_qp(kQpn);
	EXPECT_EQ(cq_record_.ci.get(), kEntries);

	for (uint32_t i = kEntries; i < 2 * kEntries; i++)
		card_completes(cqes_, i, kQpn, TERN_OP_SEND, i);
	for (uint32_t i = kEntries; i < 2 * kEntries; i++) {
		ASSERT_TRUE(cq_.next(c_));
		EXPECT_EQ(c_.wr_id, i);
	}
	EXPECT_FALSE(cq_.next(c_));
}

/* A second QP, whose completions lie between those of the first, which is destroyed. */
class DropBetweenTest : public CompletionQueueTest {
protected:
	DropBetweenTest()
	{
		EXPECT_EQ(other_.init(sq_config(64)), 0);
		EXPECT_TRUE(qps_.reserve(kQpn + 1));
		qps_.insert(kQpn + 1, {&other_, &cq_}, {}, {});
		for (uint64_t i = 0; i < 64; i++) {
			SendRequest r;
			r.wr_id = 100 + i;
			EXPECT_EQ(other_.build(r, {}), 0);
		}
	}

	/* Completion @n of the ring is for request @n of the QP that stays, or of that which does
	 * not. */
	void complete(uint32_t n, bool stays)
	{
		card_completes(cqes_, n, stays ? kQpn + 1 : kQpn, TERN_OP_SEND, n);
	}

	void expect_next(uint32_t n)
	{
		ASSERT_TRUE(cq_.next(c_)) << n;
		EXPECT_EQ(c_.qpn, kQpn + 1);
		EXPECT_EQ(c_.wr_id, 100 + n);
		EXPECT_EQ(c_.byte_len, 1000 + n);
	}

	SendQueue other_;
};

TEST_F(DropBetweenTest, WhatStaysIsPolledInOrder)
{
	post_sends(0, kEntries);
	complete(0, true);
	complete(1, false);
	complete(2, true);
	complete(3, false);
	cq_.drop_qp(kQpn);
	EXPECT_EQ(cq_record_.ci.get(), 2u);
	complete(4, true);
	complete(5, true);
	for (const uint32_t n : {0u, 2u, 4u, 5u})
		expect_next(n);
	EXPECT_FALSE(cq_.next(c_));
	cq_.release();
	EXPECT_EQ(cq_record_.ci.get(), 6u);
}

/* The phase bit is that of the place and not of the CQE that comes to lie there. */
TEST_F(DropBetweenTest, WhatStaysCanMoveAcrossTheEndOfTheRing)
{
	for (uint32_t begin = 0; begin < 8 * kEntries; begin += kEntries + 1) {
		complete(begin, true);
		expect_next(begin);
		cq_.release();
		complete(begin + 1, true);
		complete(begin + 2, true);
		complete(begin + 3, false);
		complete(begin + 4, false);
		cq_.drop_qp(kQpn);
		EXPECT_EQ(cq_record_.ci.get(), begin + 3);
		expect_next(begin + 1);
		expect_next(begin + 2);
		EXPECT_FALSE(cq_.next(c_)) << begin;
	}
}

TEST_F(DropBetweenTest, WithinAPollTheCompletionsTakenStayTaken)
{
	complete(0, true);
	complete(1, false);
	complete(2, true);
	expect_next(0);
	cq_.drop_qp(kQpn);
	expect_next(2);
	EXPECT_FALSE(cq_.next(c_));
}

TEST_F(DropBetweenTest, ArmingIsForWhatHasMoved)
{
	cq_.arm(false);
	complete(0, true);
	complete(1, true);
	complete(2, false);
	complete(3, false);
	cq_.drop_qp(kQpn);
	cq_.arm(false);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{2} << 32);
}

/* The card knows the last solicited CQE by its index, and does not see that it has moved. */
TEST_F(DropBetweenTest, WhatHasMovedRaisesTheEventSolicitedOrNot)
{
	complete(0, true);
	complete(1, true);
	complete(2, false);
	cq_.drop_qp(kQpn);
	cq_.arm(true);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | uint64_t{1} << 32);
	poll(2);
	cq_.arm(true);
	EXPECT_EQ(doorbell(TERN_DB_CQ_ARM), 0x77u | TERN_DB_CQ_SOLICITED | uint64_t{3} << 32);
}

TEST_F(CompletionQueueTest, AQueueCompletesOnlyToItsOwnCq)
{
	alignas(64) tern_hw_cqe cqes[kEntries]{};
	alignas(64) tern_hw_cq_record record{};
	CompletionQueue other;
	ASSERT_EQ(other.init(cq_config(cqes, &record)), 0);
	qps_.insert(kQpn, {&sq_, &cq_}, {&rq_, &other}, {});
	post_sends(1, 1);
	ASSERT_EQ(rq_.build(2, {}), 0);

	card_completes(cqes, 0, kQpn, TERN_OP_SEND, 0);
	card_completes(cqes, 1, kQpn, TERN_CQE_RECV, 0);
	ASSERT_TRUE(other.next(c_));
	EXPECT_EQ(c_.wr_id, 2u);
	card_completes(cqes_, 0, kQpn, TERN_OP_SEND, 0);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 1u);
}

TEST_F(CompletionQueueTest, RemoveIsOnlyForTheOwner)
{
	SendQueue other;
	EXPECT_FALSE(qps_.remove(kQpn, &other));
	EXPECT_FALSE(qps_.remove(0x800000, &other)) << "no leaf";
	EXPECT_EQ(qps_.find<SendQueue>(kQpn, &cq_), &sq_);
	EXPECT_TRUE(qps_.remove(kQpn, &sq_));
	EXPECT_EQ(qps_.find<SendQueue>(kQpn, &cq_), nullptr);
	EXPECT_EQ(qps_.find<RecvQueue>(kQpn, &cq_), nullptr);
}

/* ---- shared receive queues ----------------------------------------------------------- */

constexpr uint32_t kSrqn = 0x321;
constexpr uint32_t kOtherSrqn = 0x654321;

class SrqCompletionTest : public CompletionQueueTest {
protected:
	SrqCompletionTest()
	{
		EXPECT_EQ(srq_.init({.slots = {srq_page_.bytes, 4 * 16},
		                     .ring = {srq_page_.bytes + 64, 4 * sizeof(__le32)},
		                     .record = SrqRecord(&srq_record_),
		                     .entries = 4,
		                     .log_stride = 4},
		                    1),
		          0);
		for (uint64_t i = 0; i < 4; i++)
			EXPECT_EQ(srq_.build(100 + i, {}), 0);
		EXPECT_TRUE(srqs_.reserve(kSrqn));
		EXPECT_TRUE(plain_srqs_.reserve(kSrqn));
	}

	void use_srq()
	{
		plain_srqs_.insert(kSrqn, {&srq_, nullptr});
		qps_.insert(kQpn, {&sq_, &cq_}, {}, {&srq_, &cq_});
	}
	void use_xrc() { srqs_.insert(kSrqn, {&srq_, &cq_}, {}); }

	/* The slot that post @n went to. */
	uint32_t slot(uint32_t n) const
	{
		__le32 s;
		std::memcpy(&s, srq_page_.bytes + 64 + n * sizeof(s), sizeof(s));
		return s.get();
	}

	void card_receives(uint32_t n, uint32_t qpn, uint32_t post, uint32_t srqn = kSrqn)
	{
		card_completes(cqes_, n, qpn, TERN_CQE_RECV, slot(post));
		cqes_[n % kEntries].srqn = srqn;
	}

	/* How many requests the SRQ has room for. */
	unsigned room()
	{
		unsigned n = 0;
		while (!srq_.build(0, {}))
			n++;
		return n;
	}

	Page srq_page_;
	alignas(64) tern_hw_srq_record srq_record_{};
	SharedRecvQueue srq_;
};

TEST_F(SrqCompletionTest, ASlotFindsItsRequestAndIsFreeAgain)
{
	use_srq();
	card_receives(0, kQpn, 2);
	card_receives(1, kQpn, 0);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 102u);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 100u);
	EXPECT_EQ(room(), 2u);
}

TEST_F(SrqCompletionTest, DestroyingAQpGivesItsSlotsBack)
{
	use_srq();
	card_receives(0, kQpn, 0);
	card_receives(1, kQpn + 1, 1);
	post_sends(1, 1);
	card_completes(cqes_, 2, kQpn, TERN_OP_SEND, 0);
	cq_.drop_qp(kQpn);
	EXPECT_EQ(room(), 1u);
	cq_.drop_qp(kQpn);
	EXPECT_EQ(room(), 0u) << "and once only";
	EXPECT_FALSE(cq_.next(c_));
}

TEST_F(SrqCompletionTest, AnXrcSrqIsFoundByItsNumberForAnyQp)
{
	use_xrc();
	card_receives(0, 0xabcdef, 1);
	card_receives(1, kQpn, 3);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 101u);
	EXPECT_EQ(c_.qpn, 0xabcdefu);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 103u);
	EXPECT_EQ(room(), 2u);
}

TEST_F(SrqCompletionTest, WhatCameToAnXrcSrqOutlivesTheQp)
{
	use_xrc();
	card_receives(0, kQpn, 1);
	cq_.drop_qp(kQpn);
	ASSERT_TRUE(cq_.next(c_));
	EXPECT_EQ(c_.wr_id, 101u);
}

TEST_F(SrqCompletionTest, AnXrcSrqThatIsGoneLeavesNothing)
{
	use_xrc();
	card_receives(0, 0xabcdef, 0);
	card_receives(1, 0xabcdef, 1, kOtherSrqn);
	EXPECT_TRUE(srqs_.remove(kSrqn, &srq_));
	cq_.drop_srq(kSrqn);
	use_xrc(); /* the next one of this number */
	EXPECT_FALSE(cq_.next(c_));
	EXPECT_EQ(room(), 0u);
}

TEST_F(SrqCompletionTest, AnXrcSrqCompletesOnlyToItsOwnCq)
{
	alignas(64) tern_hw_cqe cqes[kEntries]{};
	alignas(64) tern_hw_cq_record record{};
	CompletionQueue other;
	ASSERT_EQ(other.init(cq_config(cqes, &record)), 0);
	use_xrc();
	card_completes(cqes, 0, kQpn + 5, TERN_CQE_RECV, 0);
	cqes[0].srqn = kSrqn;
	EXPECT_FALSE(other.next(c_));
	EXPECT_EQ(room(), 0u);
}

TEST_F(CompletionQueueTest, BadGeometryIsRefused)
{
	CompletionQueue cq;
	auto config = cq_config(cqes_, &cq_record_);
	config.buffer.ring = config.buffer.ring.first(3 * sizeof(tern_hw_cqe));
	EXPECT_NE(cq.init(config), 0);
	config.buffer.ring = {};
	EXPECT_NE(cq.init(config), 0);
}

} // namespace tern::provider::test
