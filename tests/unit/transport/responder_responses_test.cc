// SPDX-License-Identifier: GPL-2.0-or-later
/* The responder of a card: requests that have a response of their own. */
#include "tests/unit/transport/one_responder.h"

namespace tern::test {
namespace {

/* ---- acknowledgements ---- */

/* An acknowledgement of a READ tells a requester that lost the READ's data to ask for it again. A
 * repeated SEND or WRITE that was executed before the READ is acknowledged by its own PSN. */
TEST_F(Responder, PastBeforeAReadIsAcknowledgedAlone)
{
	post_recv();
	give(send_only(0));
	give(write(Opcode::RcWriteOnly, 1, 0, 8, 8));
	give(read(2, 0, 300));
	give(write(Opcode::RcWriteOnly, 4, 0, 8, 8));
	all_sent();
	give(send_only(0));
	expect_aeth(0, kAethAck);
	give(write(Opcode::RcWriteOnly, 1, 0, 8, 8));
	expect_aeth(1, kAethAck);
	/* This was executed after the READ. */
	give(write(Opcode::RcWriteOnly, 4, 0, 8, 8));
	expect_aeth(4, kAethAck);
}

TEST_F(Responder, PastBeforeAnAtomicIsAcknowledgedAlone)
{
	give(write(Opcode::RcWriteOnly, 0, 8, 8, 8));
	give(add(1, 0, 1));
	all_sent();
	give(write(Opcode::RcWriteOnly, 0, 8, 8, 8));
	expect_aeth(0, kAethAck);
}

/* All that were executed since the repeated packet are acknowledged at once. */
TEST_F(Responder, PastIsAcknowledgedWithWhatFollowed)
{
	for (uint32_t i = 0; i < 3; i++)
		give(write(Opcode::RcWriteOnly, i, 8, 8, 8));
	all_sent();
	give(write(Opcode::RcWriteOnly, 0, 8, 8, 8));
	expect_aeth(2, kAethAck);
}

/* An acknowledgement that waits for the wire is not replaced by one of less. */
TEST_F(Responder, AcksOfThePastMerge)
{
	give(write(Opcode::RcWriteOnly, 0, 8, 8, 8));
	give(write(Opcode::RcWriteOnly, 1, 8, 8, 8));
	give(add(2, 0, 1));
	all_sent();
	host_.wire.accept_only(0);
	give(write(Opcode::RcWriteOnly, 0, 8, 8, 8));
	give(write(Opcode::RcWriteOnly, 1, 8, 8, 8));
	give(write(Opcode::RcWriteOnly, 0, 8, 8, 8));
	open_wire();
	expect_aeth(1, kAethAck);
}

/* ---- READ ---- */

/* Expected: the data in packets of the MTU, under the PSNs that the request stands for. */
TEST_F(Responder, ReadExpected)
{
	give(read(0, 5, 600));
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 3u);
	EXPECT_EQ(p[0].opcode, Opcode::RcReadResponseFirst);
	EXPECT_EQ(p[1].opcode, Opcode::RcReadResponseMiddle);
	EXPECT_EQ(p[2].opcode, Opcode::RcReadResponseLast);
	for (uint32_t i = 0; i < 3; i++) {
		EXPECT_EQ(p[i].psn, psn(i));
		EXPECT_EQ(p[i].payload, content(5 + i * kMtu, i < 2 ? kMtu : 600 - 2 * kMtu));
	}
	/* The next request has the PSN after the last response. */
	give(read(3, 0, 0));
	const auto only = sent();
	EXPECT_EQ(only->opcode, Opcode::RcReadResponseOnly);
	EXPECT_EQ(only->psn, psn(3));
	EXPECT_EQ(only->ext.aeth.msn, 2u);
}

/* Past: executed again, also from the middle on. */
TEST_F(Responder, ReadPast)
{
	give(read(0, 0, 600));
	all_sent();
	give(read(1, kMtu, 600 - kMtu));
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 2u);
	EXPECT_EQ(p[0].opcode, Opcode::RcReadResponseFirst);
	EXPECT_EQ(p[0].psn, psn(1));
	EXPECT_EQ(p[0].payload, content(kMtu, kMtu));
	EXPECT_EQ(p[1].opcode, Opcode::RcReadResponseLast);
}

/* A repeated READ that reaches beyond what was requested before is none. */
TEST_F(Responder, ReadPastButLonger)
{
	give(read(0, 0, 16));
	all_sent();
	give(read(0, 0, 600));
	EXPECT_TRUE(all_sent().empty());
}

/*
 * The requester has lost the first response and repeats both READs, while the rest of the first and
 * all of the second are queued. It drops what arrives before the lost response, so that comes
 * first, and nothing is sent twice behind it.
 */
TEST_F(Responder, ReadsPastComeBeforeLaterOnes)
{
	host_.wire.accept_only(1);
	give(read(0, 0, 600));
	give(read(3, 0, 300));
	give(read(0, 0, 600));
	give(read(3, 0, 300));
	open_wire();
	EXPECT_EQ(psns_sent(), (std::vector<uint32_t>{0, 0, 1, 2, 3, 4}));
}

/* So does an atomic, and the response of an ATOMIC WRITE. An ACK behind them stays there. */
TEST_F(Responder, AtomicsPastComeBeforeLaterReads)
{
	give(add(0, 0, 1));
	give(atomic_write(1, 8));
	all_sent();
	host_.wire.accept_only(1);
	give(read(2, 0, 600));
	give(write(Opcode::RcWriteOnly, 5, 16, 8, 8));
	give(add(0, 0, 1));
	give(atomic_write(1, 8));
	open_wire();
	EXPECT_EQ(psns_sent(), (std::vector<uint32_t>{2, 0, 1, 3, 4, 5}));
}

/* What is still queued from the repeated packet on is not queued once more. */
TEST_F(Responder, ReadsPastThatAreQueued)
{
	host_.wire.accept_only(1);
	give(read(0, 0, 600));
	give(read(3, 0, 300));
	give(read(1, kMtu, 600 - kMtu));
	give(read(3, 0, 300));
	open_wire();
	EXPECT_EQ(all_sent().size(), 5u);
}

TEST_F(Responder, ReadFuture)
{
	give(read(1, 0, 16));
	expect_aeth(0, kSeqNak);
}

/* One more than the requester was promised. */
TEST_F(Responder, TooManyReads)
{
	auto c = connection();
	c.max_dest_rd_atomic = 2;
	connect(c);
	for (uint32_t i = 0; i < 3; i++)
		give(read(i, 0, 16), path(), false);
	run();
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 3u);
	EXPECT_EQ(p[1].opcode, Opcode::RcReadResponseOnly);
	EXPECT_EQ(p[2].ext.aeth.syndrome, kInvalidNak);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* The region goes while its data is on its way: the NAK names the packet that cannot be made. */
TEST_F(Responder, RegionGoesDuringRead)
{
	host_.wire.accept_only(1);
	give(read(0, 0, 600));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, mr_->key), TERN_AQ_OK);
	open_wire();
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 2u);
	EXPECT_EQ(p[1].psn, psn(1));
	EXPECT_EQ(p[1].ext.aeth.syndrome, kAccessNak);
	EXPECT_TRUE(event(TERN_EVENT_QP_ACCESS_ERR, qp_->number));
}

/* Nobody needs the data of a READ that is repeated after its answer, so the region may be gone. The
 * QP stays as it is, whether the READ was repeated before or after the region was destroyed. */
TEST_F(Responder, RegionGoesDuringReadPast)
{
	give(read(0, 0, 600));
	all_sent();
	host_.wire.accept_only(0);
	give(read(0, 0, 600));
	give(write(Opcode::RcWriteOnly, 3, 0, 8, 8));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, mr_->key), TERN_AQ_OK);
	open_wire();
	expect_aeth(3, kAethAck);
	EXPECT_TRUE(events().empty());
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

TEST_F(Responder, ReadPastOfNoRegion)
{
	give(read(0, 0, 600));
	all_sent();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, mr_->key), TERN_AQ_OK);
	give(read(0, 0, 600));
	give(read(1, kMtu, 600 - kMtu));
	EXPECT_TRUE(all_sent().empty());
	EXPECT_TRUE(events().empty());
	EXPECT_EQ(stat(TERN_STAT_RESP_TX_ACCESS_NAK), 0u);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

/* The host has taken the right from the QP since. */
TEST_F(Responder, ReadPastWithoutTheRight)
{
	give(read(0, 0, 600));
	all_sent();
	ASSERT_EQ(qp_->modify(TERN_QP_ACCESS_FLAGS, {}), TERN_AQ_OK);
	give(read(0, 0, 600));
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

/* ---- the host ends the QP ---- */

/* The host has the completion of a message and ends the QP before the acknowledgement is sent. */
class ResponderEnds : public Responder {
protected:
	void SetUp() override
	{
		Responder::SetUp();
		post_recv();
		host_.wire.accept_only(0);
		give(send_only(0));
		ASSERT_EQ(cq_->drain().size(), 1u);
	}
};

TEST_F(ResponderEnds, AcknowledgesInError)
{
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	open_wire();
	expect_aeth(0, kAethAck);
}

TEST_F(ResponderEnds, AcknowledgesBeforeReset)
{
	host_.wire.accept_all();
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	expect_aeth(0, kAethAck);
}

TEST_F(ResponderEnds, AcknowledgesBeforeItIsDestroyed)
{
	host_.wire.accept_all();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	expect_aeth(0, kAethAck);
}

/* The host may reuse the memory as soon as the command has ended. */
TEST_F(Responder, SendsNoReadDataAfterErrorByHost)
{
	post_recv();
	host_.wire.accept_only(1);
	give(read(0, 0, 600));
	give(send_only(3));
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	open_wire();
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 2u);
	EXPECT_EQ(p[0].opcode, Opcode::RcReadResponseFirst);
	EXPECT_EQ(p[1].opcode, Opcode::RcAcknowledge);
	EXPECT_EQ(p[1].psn, psn(3));
}

/* The response to an ATOMIC WRITE is its acknowledgement, and has no data. */
TEST_F(Responder, AcknowledgesAtomicWritesAfterErrorByHost)
{
	post_recv();
	host_.wire.accept_only(0);
	give(atomic_write(0, 0));
	give(send_only(1));
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	open_wire();
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 2u);
	EXPECT_EQ(p[0].opcode, Opcode::RcReadResponseOnly);
	EXPECT_EQ(p[0].psn, psn(0));
	EXPECT_EQ(p[1].opcode, Opcode::RcAcknowledge);
	EXPECT_EQ(p[1].psn, psn(1));
}

/* ---- atomics ---- */

/* Past: the first result again, and the memory is left alone. */
TEST_F(Responder, AtomicPast)
{
	mr_->write_u64(0, 1000);
	give(add(0, 0, 5));
	EXPECT_EQ(sent()->ext.atomic_ack, 1000u);
	mr_->write_u64(0, 7777);
	give(add(0, 0, 5));
	const auto p = sent();
	EXPECT_EQ(p->opcode, Opcode::RcAtomicAcknowledge);
	EXPECT_EQ(p->psn, psn(0));
	EXPECT_EQ(p->ext.atomic_ack, 1000u);
	EXPECT_EQ(mr_->read_u64(0), 7777u);
}

TEST_F(Responder, AtomicExpected)
{
	mr_->write_u64(8, UINT64_MAX);
	give(add(0, 8, 3));
	EXPECT_EQ(sent()->ext.atomic_ack, UINT64_MAX);
	EXPECT_EQ(mr_->read_u64(8), 2u);
	auto p = add(1, 8, 0xabc);
	p.opcode = Opcode::RcCompareSwap;
	p.ext.atomic.compare = 2;
	give(p);
	EXPECT_EQ(sent()->ext.atomic_ack, 2u);
	EXPECT_EQ(mr_->read_u64(8), 0xabcu);
	/* Not equal: left as it is. */
	p.psn = psn(2);
	p.ext.atomic.swap_add = 0xdef;
	give(p);
	EXPECT_EQ(sent()->ext.atomic_ack, 0xabcu);
	EXPECT_EQ(mr_->read_u64(8), 0xabcu);
}

TEST_F(Responder, AtomicFuture)
{
	mr_->write_u64(0, 1);
	give(add(1, 0, 5));
	expect_aeth(0, kSeqNak);
	EXPECT_EQ(mr_->read_u64(0), 1u);
}

TEST_F(Responder, AtomicMisaligned)
{
	give(add(0, 4, 5));
	expect_error(0, kInvalidNak, TERN_EVENT_QP_REQ_ERR);
}

/* Sixteen results are kept, as many as may be outstanding; an older one is not made up. */
TEST_F(Responder, AtomicResultsKept)
{
	mr_->write_u64(0, 0);
	for (uint32_t i = 0; i < 17; i++)
		give(add(i, 0, 1));
	all_sent();
	give(add(1, 0, 1));
	EXPECT_EQ(sent()->ext.atomic_ack, 1u);
	give(add(0, 0, 1));
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(mr_->read_u64(0), 17u);
}

/* ---- ATOMIC WRITE ---- */

/* The value is not written again over what others wrote since. */
TEST_F(Responder, AtomicWritePast)
{
	give(atomic_write(0, 0));
	expect_empty_response(0);
	mr_->write_u64(0, 7777);
	give(atomic_write(0, 0));
	expect_empty_response(0);
	EXPECT_EQ(mr_->read_u64(0), 7777u);
	EXPECT_EQ(stat(TERN_STAT_RESP_DUPLICATES), 1u);
}

TEST_F(Responder, AtomicWriteExpected)
{
	give(atomic_write(0, 8));
	expect_empty_response(0);
	EXPECT_EQ(mr_->read(8, 8), bytes(8));
	/* It has a PSN and a message of its own. */
	give(atomic_write(1, 16));
	const auto p = sent();
	ASSERT_TRUE(p);
	EXPECT_EQ(p->ext.aeth.msn, 2u);
	EXPECT_EQ(stat(TERN_STAT_RESP_WRITES), 2u);
}

TEST_F(Responder, AtomicWriteFuture)
{
	mr_->write_u64(0, 1);
	give(atomic_write(1, 0));
	expect_aeth(0, kSeqNak);
	EXPECT_EQ(mr_->read_u64(0), 1u);
}

class ResponderAtomicWriteShape : public Responder, public ::testing::WithParamInterface<int> {};

TEST_P(ResponderAtomicWriteShape, IsRefused)
{
	const auto before = mr_->read(0, 32);
	auto p = atomic_write(0, 0);
	switch (GetParam()) {
	case 0:
		p.ext.reth.va += 4; /* not aligned */
		break;
	case 1:
		p.payload = bytes(4);
		break;
	case 2:
		p.payload = bytes(16);
		break;
	case 3:
		p.ext.reth.length = 16;
		break;
	}
	give(p);
	expect_error(0, kInvalidNak, TERN_EVENT_QP_REQ_ERR);
	EXPECT_EQ(mr_->read(0, 32), before);
}

INSTANTIATE_TEST_SUITE_P(All, ResponderAtomicWriteShape, ::testing::Range(0, 4));

/* The depth of the responder is that of READs and atomics together. */
TEST_F(Responder, AtomicWritesCountAsOutstanding)
{
	auto c = connection();
	c.max_dest_rd_atomic = 2;
	connect(c);
	give(read(0, 0, 16), path(), false);
	give(atomic_write(1, 0), path(), false);
	give(atomic_write(2, 0), path(), false);
	run();
	const auto all = all_sent();
	ASSERT_EQ(all.size(), 3u);
	EXPECT_EQ(all[2].ext.aeth.syndrome, kInvalidNak);
}

} // namespace
} // namespace tern::test
