// SPDX-License-Identifier: GPL-2.0-or-later
/* Absent pages while other answers wait to be sent, and while the requester waits for other
 * reasons. */
#include "tests/unit/transport/one_paged_region.h"

namespace tern::test {
namespace {

/* The data of a READ waits for the wire when the pages of a later SEND cannot be had. The READ was
 * executed, so its data is sent before the NAK. */
TEST_F(Paging, AFailureLeavesEarlierResponses)
{
	connect();
	bring(0);
	qp_->post_recv(at(kPage, kPage));
	host_.wire.accept_only(1);
	give(request(Opcode::RcReadRequest, 0, 0, 3 * kMtu));
	give(request(Opcode::RcSendOnly, 3, 0, 0, bytes(100)));
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	open_wire();
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 4u);
	for (uint32_t i = 0; i < 3; i++)
		EXPECT_EQ(p[i].psn, psn_after(kRqPsn, i));
	EXPECT_EQ(p[2].opcode, Opcode::RcReadResponseLast);
	EXPECT_EQ(p[3].psn, psn_after(kRqPsn, 3));
	EXPECT_EQ(p[3].ext.aeth.syndrome, kOperationNak);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* The peer repeats a READ from the absent page on, and the region is gone. The data was never sent,
 * so the connection ends. */
TEST_F(Paging, AReadThatStoppedNeedsItsRegion)
{
	connect();
	bring(0, false);
	give(request(Opcode::RcReadRequest, 0, kPage - kMtu, 3 * kMtu));
	EXPECT_EQ(all_sent().size(), 2u);
	const auto again = request(Opcode::RcReadRequest, 1, kPage, 2 * kMtu);
	ASSERT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, paged_->key), TERN_AQ_OK);
	events();
	give(again);
	expect_aeth(1, kAccessNak);
	EXPECT_TRUE(event(TERN_EVENT_QP_ACCESS_ERR, qp_->number));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* The same if the peer has lost the first response, too. */
TEST_F(Paging, AReadThatStoppedIsRepeatedFromItsBeginning)
{
	connect();
	bring(0, false);
	const auto read = request(Opcode::RcReadRequest, 0, kPage - kMtu, 3 * kMtu);
	give(read);
	EXPECT_EQ(all_sent().size(), 2u);
	ASSERT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, paged_->key), TERN_AQ_OK);
	give(read);
	expect_aeth(0, kAccessNak);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* The same if not even the first packet was sent. */
TEST_F(Paging, AReadThatNeverBeganNeedsItsRegion)
{
	connect();
	const auto read = request(Opcode::RcReadRequest, 0, 0, 3 * kMtu);
	give(read);
	expect_aeth(0, kRnr);
	ASSERT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, paged_->key), TERN_AQ_OK);
	give(read);
	expect_aeth(0, kAccessNak);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* A READ that was answered is repeated, and its page has been taken away since. The host brings the
 * page again, for the peer may have lost the data. Other answers are sent as ever. */
class PagingReadPast : public Paging {
protected:
	void SetUp() override
	{
		Paging::SetUp();
		connect();
		bring(0, false);
		bring(1);
		read_ = request(Opcode::RcReadRequest, 0, 0, 2 * kMtu);
		give(read_);
		EXPECT_EQ(all_sent().size(), 2u);
		paged_->buffer.take_away(0);
		EXPECT_EQ(sync(paged_->key), TERN_AQ_OK);
		give(read_, path(), false);
		give(request(Opcode::RcReadRequest, 2, kPage, 8), path(), false);
		give(request(Opcode::RcWriteOnly, 3, kPage, 8, bytes(8)), path(), false);
		run();

		const auto p = all_sent();
		ASSERT_EQ(p.size(), 3u);
		EXPECT_EQ(p[0].opcode, Opcode::RcAcknowledge);
		EXPECT_EQ(p[0].psn, psn_after(kRqPsn, 0));
		EXPECT_EQ(p[0].ext.aeth.syndrome, kRnr);
		EXPECT_EQ(p[1].opcode, Opcode::RcReadResponseOnly);
		EXPECT_EQ(p[1].psn, psn_after(kRqPsn, 2));
		EXPECT_EQ(p[2].opcode, Opcode::RcAcknowledge);
		EXPECT_EQ(p[2].psn, psn_after(kRqPsn, 3));
		EXPECT_EQ(p[2].ext.aeth.syndrome & kAethKindMask, kAethAck);
		EXPECT_TRUE(told());
	}

	TestPacket read_;
};

TEST_F(PagingReadPast, IsAnsweredWhenThePageIsThere)
{
	expect_fault(faults().responder, 0, 2 * kMtu, false);
	bring(0, false);
	resume(TERN_RESUME_NONE, TERN_RESUME_RETRY);
	EXPECT_FALSE(sent());
	give(read_);
	EXPECT_EQ(all_sent().size(), 2u);
}

/* The peer may have the data: nothing that it still needs has failed. */
TEST_F(PagingReadPast, FailsAlone)
{
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_FALSE(sent());
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	give(request(Opcode::RcWriteOnly, 4, kPage, 8, bytes(8)));
	expect_aeth(4, kAethAck);
}

/* The peer waits for an RNR NAK to end, so it sends nothing that its timer could be for. */
TEST_F(Paging, NoAckTimerWhileThePeerIsNotReady)
{
	constexpr uint8_t kLongest = 0; /* 655 ms */
	connect();
	bring(0);
	post(TERN_OP_SEND, at(0, 8));
	post(TERN_OP_SEND, at(kPage, 8));
	EXPECT_EQ(all_sent().size(), 1u);
	TestPacket nak{.opcode = Opcode::RcAcknowledge, .psn = psn_after(kSqPsn, 0)};
	nak.ext.aeth = {kAethRnrNak | kLongest, 0};
	give(nak);
	bring(1);
	resume(TERN_RESUME_RETRY, TERN_RESUME_NONE);
	pass(600'000'000);
	EXPECT_EQ(stat(TERN_STAT_REQ_TIMEOUTS), 0u);
	EXPECT_FALSE(sent());
	pass(56'000'000);
	EXPECT_TRUE(sent());
	EXPECT_EQ(stat(TERN_STAT_REQ_TIMEOUTS), 0u);
	EXPECT_TRUE(cq_->drain().empty());
}

} // namespace
} // namespace tern::test
