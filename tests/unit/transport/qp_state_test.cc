// SPDX-License-Identifier: GPL-2.0-or-later
/* MODIFY_QP, and what a QP does in each state. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint8_t kNoCredits = kAethAck | 31;

class QpState : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		qp_ = make_qp();
	}
	SendRequest send(uint8_t flags = TERN_WQE_SIGNALED) const
	{
		return {.opcode = TERN_OP_SEND, .flags = flags, .sges = {mr_->sge(0, 10)}};
	}
	void ack(uint32_t n)
	{
		TestPacket p{.opcode = Opcode::RcAcknowledge, .psn = psn_after(kSqPsn, n)};
		p.ext.aeth = {kNoCredits, 0};
		give(p);
	}
	std::vector<int> statuses()
	{
		std::vector<int> result;
		for (const auto &c : cq_->drain())
			result.push_back(c.status);
		return result;
	}
	using Statuses = std::vector<int>;
};

constexpr int kFlushed = TERN_WC_WR_FLUSH_ERR;

/* Each step needs exactly its attributes. */
TEST_F(QpState, StepsAndTheirAttributes)
{
	EXPECT_EQ(qp_->set_state(TERN_QPS_RTR), TERN_AQ_BAD_STATE);
	EXPECT_EQ(qp_->set_state(TERN_QPS_INIT), TERN_AQ_BAD_STATE); /* attributes missing */
	qp_->to_init(connection());
	EXPECT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_BAD_STATE);
	qp_->to_rtr(connection());
	EXPECT_EQ(qp_->set_state(TERN_QPS_INIT), TERN_AQ_BAD_STATE);
	EXPECT_EQ(qp_->set_state(TERN_QPS_SQD), TERN_AQ_BAD_STATE);
	qp_->to_rts(connection());
	/* one too many */
	EXPECT_EQ(qp_->set_state(TERN_QPS_SQD, TERN_QP_SQ_PSN), TERN_AQ_BAD_STATE);
	EXPECT_EQ(qp_->set_state(TERN_QPS_SQD, 1u << 30), TERN_AQ_BAD_STATE);
	EXPECT_EQ(qp_->set_state(TERN_QPS_SQD), TERN_AQ_OK);
	EXPECT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_OK);
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_BAD_STATE);
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	EXPECT_EQ(qp_state(), TERN_QPS_RESET);
}

TEST_F(QpState, CurrentStateMustBeRight)
{
	qp_->connect(connection());
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_RTS;
	attr.cur_state = TERN_QPS_RTR;
	EXPECT_EQ(qp_->modify(TERN_QP_STATE | TERN_QP_CUR_STATE, attr), TERN_AQ_BAD_STATE);
	attr.cur_state = TERN_QPS_RTS;
	EXPECT_EQ(qp_->modify(TERN_QP_STATE | TERN_QP_CUR_STATE, attr), TERN_AQ_OK);
}

/* A refused change changes nothing. */
TEST_F(QpState, ValuesOutOfRange)
{
	qp_->connect(connection());
	tern_hw_qp_attr attr{};
	attr.access = 0x10;
	EXPECT_EQ(qp_->modify(TERN_QP_ACCESS_FLAGS, attr), TERN_AQ_BAD_FIELD);
	attr.access = 0;
	attr.min_rnr_timer = 32;
	EXPECT_EQ(qp_->modify(TERN_QP_ACCESS_FLAGS | TERN_QP_MIN_RNR_TIMER, attr),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(qp_->query().access, connection().access);
	attr.min_rnr_timer = 31;
	attr.rsvd = 1;
	EXPECT_EQ(qp_->modify(TERN_QP_MIN_RNR_TIMER, attr), TERN_AQ_BAD_FIELD);
}

TEST_F(QpState, AddressNeedsAGid)
{
	auto c = connection();
	qp_->to_init(c);
	c.sgid_index = 5;
	EXPECT_ANY_THROW(qp_->to_rtr(c));
	c.sgid_index = 200;
	EXPECT_ANY_THROW(qp_->to_rtr(c));
}

/* RoCEv2 over IPv4 needs two IPv4 addresses, over IPv6 none; RoCEv1 takes any GIDs. */
TEST_F(QpState, AddressesOfOneKind)
{
	constexpr Gid kCardGid6{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
	constexpr Gid kPeerGid6{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
	driver_.set_gid(1, TERN_GID_ROCE_V2, kCardGid6);
	driver_.set_gid(2, TERN_GID_ROCE_V1, kCardGid6);
	auto c = connection();
	qp_->to_init(c);
	c.dgid = kPeerGid6;
	EXPECT_ANY_THROW(qp_->to_rtr(c));
	c.sgid_index = 1;
	c.dgid = kPeerGid;
	EXPECT_ANY_THROW(qp_->to_rtr(c));
	EXPECT_EQ(qp_->query().state, TERN_QPS_INIT);
	c.sgid_index = 2;
	qp_->to_rtr(c);
	qp_ = make_qp();
	qp_->to_init(c);
	c.sgid_index = 1;
	c.dgid = kPeerGid6;
	qp_->to_rtr(c);
}

TEST_F(QpState, QueryTellsWhatWasSet)
{
	qp_->connect(connection());
	qp_->post_send(send());
	run();
	const auto attr = qp_->query();
	EXPECT_EQ(attr.state, TERN_QPS_RTS);
	EXPECT_EQ(attr.dest_qpn.get(), kPeerQpn);
	EXPECT_EQ(attr.rq_psn.get(), kRqPsn);
	EXPECT_EQ(attr.sq_psn.get(), psn_after(kSqPsn, 1));
	EXPECT_EQ(attr.timeout, connection().timeout);
}

/* Posted before RTS: it waits, and goes out without another doorbell. */
TEST_F(QpState, PostsBeforeRtsWait)
{
	qp_->to_init(connection());
	qp_->post_send(send());
	run();
	qp_->to_rtr(connection());
	EXPECT_TRUE(all_sent().empty());
	qp_->to_rts(connection());
	EXPECT_EQ(all_sent().size(), 1u);
}

/* SQD: what was started ends, then the event; what is posted waits for RTS. */
TEST_F(QpState, Drains)
{
	qp_->connect(connection());
	qp_->post_send(send());
	run();
	all_sent();
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_SQD;
	attr.en_sqd_async_notify = 1;
	EXPECT_EQ(qp_->modify(TERN_QP_STATE | TERN_QP_EN_SQD_ASYNC_NOTIFY, attr), TERN_AQ_OK);
	qp_->post_send(send());
	run();
	EXPECT_TRUE(all_sent().empty());
	EXPECT_EQ(qp_->query().sq_draining, 1);
	EXPECT_FALSE(event(TERN_EVENT_SQ_DRAINED, qp_->number));
	ack(0);
	EXPECT_EQ(qp_->query().sq_draining, 0);
	EXPECT_TRUE(event(TERN_EVENT_SQ_DRAINED, qp_->number));
	EXPECT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_OK);
	EXPECT_EQ(all_sent().size(), 1u);
	/* Not asked for the event: none. */
	ack(1);
	EXPECT_EQ(qp_->set_state(TERN_QPS_SQD), TERN_AQ_OK);
	EXPECT_FALSE(event(TERN_EVENT_SQ_DRAINED, qp_->number));
}

/* Attributes may change while the QP drains: that does not take back the request for the event. */
TEST_F(QpState, ChangeWhileDrainingKeepsTheRequest)
{
	qp_->connect(connection());
	qp_->post_send(send());
	run();
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_SQD;
	attr.en_sqd_async_notify = 1;
	EXPECT_EQ(qp_->modify(TERN_QP_STATE | TERN_QP_EN_SQD_ASYNC_NOTIFY, attr), TERN_AQ_OK);
	attr = {};
	attr.state = TERN_QPS_SQD;
	attr.timeout = 9;
	EXPECT_EQ(qp_->modify(TERN_QP_STATE | TERN_QP_TIMEOUT, attr), TERN_AQ_OK);
	EXPECT_EQ(qp_->query().sq_draining, 1);
	ack(0);
	EXPECT_TRUE(event(TERN_EVENT_SQ_DRAINED, qp_->number));
	/* The next drain must ask again. */
	EXPECT_EQ(qp_->set_state(TERN_QPS_RTS), TERN_AQ_OK);
	EXPECT_EQ(qp_->set_state(TERN_QPS_SQD), TERN_AQ_OK);
	EXPECT_FALSE(event(TERN_EVENT_SQ_DRAINED, qp_->number));
}

TEST_F(QpState, AnErrorEndsDraining)
{
	qp_->connect(connection());
	qp_->post_send(send());
	run();
	EXPECT_EQ(qp_->set_state(TERN_QPS_SQD), TERN_AQ_OK);
	EXPECT_EQ(qp_->query().sq_draining, 1);
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(qp_->query().sq_draining, 0);
}

/* In SQD the responder goes on, and lost packets are repeated. */
TEST_F(QpState, SqdKeepsProtocolAlive)
{
	qp_->connect(connection());
	qp_->post_recv(mr_->sge(0, 100));
	qp_->post_send(send());
	run();
	EXPECT_EQ(qp_->set_state(TERN_QPS_SQD), TERN_AQ_OK);
	all_sent();
	pass((4 * 4096ull) << 8);
	EXPECT_EQ(all_sent().size(), 1u);
	give({.opcode = Opcode::RcSendOnly, .psn = kRqPsn, .ack_request = true});
	EXPECT_EQ(all_sent().size(), 1u);
}

/* To ERR: under way, not started, receives; all flushed, each queue in order. */
TEST_F(QpState, ErrorFlushesAll)
{
	qp_->connect(connection());
	std::vector<uint32_t> posted;
	for (int i = 0; i < 3; i++)
		qp_->post_recv(mr_->sge(0, 100));
	posted.push_back(qp_->post_send(send(0)));
	run();
	posted.push_back(qp_->post_send(send(), false));
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	qp_->publish();
	run();
	std::vector<uint32_t> sends, receives;
	for (const auto &c : cq_->drain()) {
		EXPECT_EQ(c.status, kFlushed);
		(c.opcode & TERN_CQE_RECV ? receives : sends).push_back(c.wqe_index.get());
	}
	EXPECT_EQ(sends, posted);
	EXPECT_EQ(receives, (std::vector<uint32_t>{0, 1, 2}));
}

/* Later posts too: sends by their doorbell, each time; receives, which have none, by the timer. */
TEST_F(QpState, ErrorFlushesLaterPosts)
{
	qp_->connect(connection());
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	for (int i = 0; i < 3; i++) {
		qp_->post_send(send());
		run();
		EXPECT_EQ(statuses(), (Statuses{kFlushed}));
	}
	for (int i = 0; i < 3; i++) {
		qp_->post_recv(mr_->sge(0, 100));
		pass(70'000'000);
		EXPECT_EQ(statuses(), (Statuses{kFlushed}));
	}
}

/* In ERR packets are dropped; after RESET the QP is as new. */
TEST_F(QpState, ResetAndAgain)
{
	qp_->connect(connection());
	qp_->post_send(send());
	run();
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	give({.opcode = Opcode::RcSendOnly, .psn = kRqPsn, .ack_request = true});
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_STATE), 1u);
	EXPECT_EQ(statuses(), (Statuses{kFlushed}));
	all_sent();
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	qp_->forget();
	qp_->connect(connection());
	qp_->post_send(send());
	run();
	const auto p = all_sent();
	ASSERT_EQ(p.size(), 1u);
	EXPECT_EQ(p[0].psn, kSqPsn);
	ack(0);
	EXPECT_EQ(statuses(), (Statuses{TERN_WC_SUCCESS}));
}

/* RESET gives up without a word. */
TEST_F(QpState, ResetFlushesNothing)
{
	qp_->connect(connection());
	qp_->post_send(send());
	qp_->post_recv(mr_->sge(0, 100));
	run();
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	pass(1'000'000'000);
	EXPECT_TRUE(statuses().empty());
}

/* A CQ that overruns: its event, and the QP's that could not complete there. */
TEST_F(QpState, CompletionQueueOverruns)
{
	cq_ = driver_.create_cq(*eq_, 1);
	qp_ = make_qp();
	qp_->connect(connection());
	for (int i = 0; i < 3; i++)
		qp_->post_send(send());
	run();
	ack(2);
	std::vector<std::pair<int, uint32_t>> seen;
	for (const auto &e : events())
		seen.emplace_back(e.type, e.id.get());
	EXPECT_EQ(seen,
	          (std::vector<std::pair<int, uint32_t>>{{TERN_EVENT_CQ_ERR, cq_->number},
	                                                 {TERN_EVENT_QP_FATAL, qp_->number}}));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	EXPECT_EQ(statuses(), (Statuses{0, 0}));
	EXPECT_EQ(stat(TERN_STAT_CQ_OVERRUNS), 1u);
}

} // namespace
} // namespace tern::test
