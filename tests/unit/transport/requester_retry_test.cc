// SPDX-License-Identifier: GPL-2.0-or-later
/* When the requester of a card sends again, and when it gives up. */
#include "tests/unit/transport/one_requester.h"

namespace tern::test {
namespace {

/* ---- time ---- */

/* No answer: all is sent again from the oldest packet, as often as retry_cnt says; then the error.
 */
TEST_F(Requester, TimeoutsThenError)
{
	auto c = connection();
	c.retry_cnt = 2;
	connect(c);
	const auto a = post(send(300));
	const auto b = post(send(1));
	EXPECT_EQ(psns_sent(), (Psns{0, 1, 2}));
	pass(kTimeout - 1000);
	EXPECT_EQ(psns_sent(), Psns{});
	pass(1000);
	EXPECT_EQ(psns_sent(), (Psns{0, 1, 2}));
	pass(kTimeout);
	EXPECT_EQ(psns_sent(), (Psns{0, 1, 2}));
	EXPECT_TRUE(completions().empty());
	pass(kTimeout);
	EXPECT_EQ(completions(),
	          (Completions{{a, TERN_WC_RETRY_EXC_ERR}, {b, TERN_WC_WR_FLUSH_ERR}}));
	EXPECT_EQ(stat(TERN_STAT_REQ_TIMEOUTS), 3u);
	EXPECT_EQ(stat(TERN_STAT_REQ_RETRANSMITS), 6u);
}

/* Progress gives the retries back. */
/* RETRY_CNT and RNR_RETRY are optional in SQD (IBA 11.2.5.2). */
TEST_F(Requester, RetriesChangeInSqd)
{
	auto c = connection();
	c.retry_cnt = c.rnr_retry = 0;
	connect(c);
	ASSERT_EQ(qp_->set_state(TERN_QPS_SQD), TERN_AQ_OK);
	tern_hw_qp_attr attr{};
	attr.retry_cnt = attr.rnr_retry = 1;
	ASSERT_EQ(qp_->modify(TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY, attr), TERN_AQ_OK);
	ASSERT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_OK);
	post(send(1));
	EXPECT_EQ(psns_sent(), Psns{0});
	pass(kTimeout);
	EXPECT_EQ(psns_sent(), Psns{0});
	ack(0, kAethRnrNak | 1);
	pass(1'000'000);
	EXPECT_EQ(psns_sent(), Psns{0});
	ack(0);
	EXPECT_EQ(completions(), (Completions{{0, TERN_WC_SUCCESS}}));
}

TEST_F(Requester, ProgressRefillsRetries)
{
	auto c = connection();
	c.retry_cnt = 1;
	connect(c);
	post(write(1024));
	for (uint32_t i = 0; i < 3; i++) {
		pass(kTimeout);
		ack(i);
	}
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

/* Timeout 0 waits for ever. */
TEST_F(Requester, NoTimeout)
{
	auto c = connection();
	c.timeout = 0;
	connect(c);
	post(send(1));
	all_sent();
	EXPECT_FALSE(card_.next_deadline());
}

/* The queue of deadlines holds one of each QP, whatever happens: a NAK after a NAK moves it to and
 * fro. */
TEST_F(Requester, TimersDoNotPileUp)
{
	auto c = connection();
	c.timeout = 31;
	connect(c);
	post(send(1));
	for (int i = 0; i < 50; i++) {
		ack(0, kAethRnrNak | 1);
		pass(10'000);
	}
	ack(0);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	EXPECT_FALSE(card_.next_deadline());
}

/* ---- RNR ---- */

/* The time that the peer names passes, then the request goes out again. */
TEST_F(Requester, RnrWaits)
{
	post(send(300));
	post(send(1));
	all_sent();
	ack(0, kAethRnrNak | 14); /* 1.28 ms */
	pass(1'279'000);
	EXPECT_EQ(psns_sent(), Psns{});
	pass(1'000);
	EXPECT_EQ(psns_sent(), (Psns{0}));
	ack(0, kNoCredits, 0);
	EXPECT_EQ(psns_sent(), (Psns{1, 2}));
}

/*
 * A peer that counts no credits, as one with an SRQ, is sent one message after RNR, and with each
 * acknowledgement twice as many at once: what it has no receive WQE for would be sent in vain.
 */
TEST_F(Requester, RnrWithoutCredits)
{
	for (int i = 0; i < 12; i++)
		post(send(1));
	EXPECT_EQ(psns_sent().size(), 12u);
	for (int i = 0; i < 2; i++) {
		ack(0, kAethRnrNak | 1, 0);
		pass(10'000);
		EXPECT_EQ(psns_sent(), (Psns{0}));
	}
	ack(0, kNoCredits, 1);
	EXPECT_EQ(psns_sent(), (Psns{1, 2}));
	ack(1, kNoCredits, 2);
	EXPECT_EQ(psns_sent(), (Psns{3, 4, 5}));
	ack(3, kAethRnrNak | 1, 3);
	pass(10'000);
	EXPECT_EQ(psns_sent(), (Psns{3}));
}

/* Peers that do acknowledge get all again, whatever MSN they tell. */
TEST_F(Requester, RnrIsOver)
{
	for (uint32_t i = 0; i < 9; i++)
		post(send(1));
	ack(0, kAethRnrNak | 1, 0);
	pass(10'000);
	for (uint32_t i = 0; i < 9; i++)
		ack(i, kNoCredits, 0);
	all_sent();
	for (uint32_t i = 0; i < 100; i++)
		post(send(1));
	EXPECT_EQ(psns_sent().size(), 100u);
}

TEST_F(Requester, RnrRetriesThenError)
{
	auto c = connection();
	c.rnr_retry = 2;
	connect(c);
	const auto a = post(send(1));
	for (int i = 0; i < 2; i++) {
		ack(0, kAethRnrNak | 1);
		EXPECT_TRUE(completions().empty());
		pass(10'000);
	}
	ack(0, kAethRnrNak | 1);
	EXPECT_EQ(completions(), (Completions{{a, TERN_WC_RNR_RETRY_EXC_ERR}}));
}

/* 7 is for ever. */
TEST_F(Requester, RnrForEver)
{
	post(send(1));
	for (int i = 0; i < 100; i++) {
		ack(0, kAethRnrNak | 1);
		pass(10'000);
	}
	ack(0);
	EXPECT_EQ(completions(), (Completions{{0, 0}}));
}

/* The same NAK twice (the frame was duplicated) costs one retry. */
TEST_F(Requester, RnrTwice)
{
	auto c = connection();
	c.rnr_retry = 1;
	connect(c);
	post(send(1));
	ack(0, kAethRnrNak | 1);
	ack(0, kAethRnrNak | 1);
	pass(10'000);
	ack(0);
	EXPECT_EQ(completions(), (Completions{{0, 0}}));
}

/* ---- NAK ---- */

/* A gap: what came before it is acknowledged, the rest goes out again. */
TEST_F(Requester, SequenceNakGoesBack)
{
	const auto a = post(send(1));
	post(send(600));
	all_sent();
	ack(2, nak_syndrome(NakCode::PsnSequenceError));
	EXPECT_EQ(completions(), (Completions{{a, 0}}));
	EXPECT_EQ(psns_sent(), (Psns{2, 3}));
}

/* The same NAK twice (the frame was duplicated) costs one retry, whether or not the packets have
 * been sent again meanwhile. */
TEST_F(Requester, SequenceNakTwice)
{
	auto c = connection();
	c.retry_cnt = 1;
	connect(c);
	post(send(300));
	all_sent();
	for (int i = 0; i < 3; i++)
		ack(0, nak_syndrome(NakCode::PsnSequenceError));
	EXPECT_EQ(psns_sent(), (Psns{0, 1}));
	EXPECT_EQ(stat(TERN_STAT_REQ_RX_SEQ_NAK), 3u);
	EXPECT_EQ(stat(TERN_STAT_REQ_DUP_ACK), 2u);
	ack(1);
	EXPECT_EQ(completions(), (Completions{{0, 0}}));
}

/* A packet acknowledged, or an RNR NAK, shows that the peer had the packet in between: the next NAK
 * reports another loss. */
TEST_F(Requester, SequenceNakOfAnotherLoss)
{
	auto c = connection();
	c.retry_cnt = 1;
	connect(c);
	post(send(300));
	all_sent();
	for (const uint32_t n : {0u, 1u}) {
		ack(n, nak_syndrome(NakCode::PsnSequenceError));
		EXPECT_EQ(psns_sent(), n ? (Psns{1}) : (Psns{0, 1}));
	}
	ack(1, kAethRnrNak | 1);
	pass(10'000);
	EXPECT_EQ(psns_sent(), (Psns{1}));
	ack(1, nak_syndrome(NakCode::PsnSequenceError));
	EXPECT_EQ(psns_sent(), (Psns{1}));
	EXPECT_EQ(stat(TERN_STAT_REQ_RX_SEQ_NAK), 3u);
}

/* Counted when it arrives, whatever it is good for: for a packet behind an open READ, whose missing
 * responses are requested first, and for one that has been acknowledged. */
TEST_F(Requester, EverySequenceNakIsCounted)
{
	post(send(1));
	post(read(10));
	post(send(300));
	all_sent();
	ack(2, nak_syndrome(NakCode::PsnSequenceError));
	EXPECT_EQ(stat(TERN_STAT_REQ_RX_SEQ_NAK), 1u);
	EXPECT_EQ(stat(TERN_STAT_REQ_IMPLIED_NAK), 1u);
	EXPECT_EQ(psns_sent(), (Psns{1, 2, 3}));
	ack(0, nak_syndrome(NakCode::PsnSequenceError));
	EXPECT_EQ(stat(TERN_STAT_REQ_RX_SEQ_NAK), 2u);
	EXPECT_TRUE(all_sent().empty());
}

/* Past: the gap was filled since. */
TEST_F(Requester, NakPast)
{
	post(send(1));
	ack(0);
	post(send(1));
	all_sent();
	ack(0, nak_syndrome(NakCode::RemoteAccessError));
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

/* No retry allowed: the first gap is the end. */
TEST_F(Requester, SequenceNakWithoutRetries)
{
	auto c = connection();
	c.retry_cnt = 0;
	connect(c);
	const auto a = post(send(1));
	ack(0, nak_syndrome(NakCode::PsnSequenceError));
	EXPECT_EQ(completions(), (Completions{{a, TERN_WC_RETRY_EXC_ERR}}));
}

struct NakStatus {
	NakCode code;
	int status;
};

class RequesterNak : public Requester, public ::testing::WithParamInterface<NakStatus> {};

/* The named request fails; those before it are done, those behind it flushed, also unsignaled ones.
 */
TEST_P(RequesterNak, EndsTheRequest)
{
	const auto a = post(send(1));
	const auto b = post(write(600));
	const auto c = post(send(1, 0));
	ack(2, nak_syndrome(GetParam().code));
	EXPECT_EQ(completions(),
	          (Completions{{a, 0}, {b, GetParam().status}, {c, TERN_WC_WR_FLUSH_ERR}}));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

INSTANTIATE_TEST_SUITE_P(
        All, RequesterNak,
        ::testing::Values(NakStatus{NakCode::InvalidRequest, TERN_WC_REM_INV_REQ_ERR},
                          NakStatus{NakCode::RemoteAccessError, TERN_WC_REM_ACCESS_ERR},
                          NakStatus{NakCode::RemoteOperationalError, TERN_WC_REM_OP_ERR}));

} // namespace
} // namespace tern::test
