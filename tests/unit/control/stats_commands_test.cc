// SPDX-License-Identifier: GPL-2.0-or-later
/* CREATE_STATS, DESTROY_STATS, BIND_STATS, and what QUERY_STATS tells of a set. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

class StatsCommands : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		qp_ = make_qp();
		qp_->connect(connection());
		other_ = make_qp();
		other_->connect(connection());
	}
	uint32_t create()
	{
		return driver_.command(make_command(TERN_AQ_CREATE_STATS)).created.id.get();
	}
	tern_hw_aq_status destroy(uint32_t set)
	{
		auto c = make_command(TERN_AQ_DESTROY_STATS);
		c.object.id = set;
		return driver_.status_of(c);
	}
	tern_hw_aq_status bind(uint32_t qpn, uint32_t set)
	{
		auto c = make_command(TERN_AQ_BIND_STATS);
		c.bind_stats.qpn = qpn;
		c.bind_stats.set = set;
		return driver_.status_of(c);
	}
	uint64_t count(tern_hw_stat which, uint32_t set) { return driver_.stat(which, set); }
	/** What all, unbound() and @set count, in that order. */
	std::vector<uint64_t> counts(tern_hw_stat which, uint32_t set)
	{
		return {count(which, TERN_STATS_ALL), count(which, TERN_STATS_UNBOUND),
		        count(which, set)};
	}
	using Counts = std::vector<uint64_t>;

	void write(HostQp &qp)
	{
		qp.post_send({.opcode = TERN_OP_WRITE, .rkey = 1, .sges = {mr_->sge(0, 600)}});
		run();
		all_sent();
	}
	void receive(HostQp &qp, uint32_t psn)
	{
		give({.opcode = Opcode::RcSendOnly, .psn = psn, .qpn = qp.number}, path());
	}

	std::unique_ptr<HostQp> other_;
};

TEST_F(StatsCommands, ASetCountsForItsQpsAlone)
{
	EXPECT_NE(card_.read_register(TERN_REG_CAPS) & TERN_CAP_QP_STATS, 0u);
	const uint32_t set = create();
	ASSERT_EQ(bind(qp_->number, set), TERN_AQ_OK);
	write(*qp_);
	write(*other_);
	EXPECT_EQ(counts(TERN_STAT_ROCE_TX_PACKETS, set), (Counts{6, 3, 3}));
	pass(10'000'000'000); /* until both give up */
	EXPECT_EQ(counts(TERN_STAT_REQ_RETRY_EXCEEDED, set), (Counts{2, 1, 1}));
	EXPECT_EQ(count(TERN_STAT_REQ_TIMEOUTS, set),
	          count(TERN_STAT_REQ_TIMEOUTS, TERN_STATS_UNBOUND));
	EXPECT_GT(count(TERN_STAT_REQ_TIMEOUTS, set), 0u);
	/* The flush of an error is a chore. */
	write(*qp_);
	EXPECT_EQ(counts(TERN_STAT_REQ_CQE_FLUSHED, set), (Counts{1, 0, 1}));
}

TEST_F(StatsCommands, PacketsThatArriveCountForTheirQp)
{
	const uint32_t set = create();
	ASSERT_EQ(bind(qp_->number, set), TERN_AQ_OK);
	receive(*qp_, kRqPsn); /* no receive WQE */
	receive(*other_, kRqPsn);
	receive(*qp_, psn_after(kRqPsn, 9));
	EXPECT_EQ(counts(TERN_STAT_ROCE_RX_PACKETS, set), (Counts{3, 1, 2}));
	EXPECT_EQ(counts(TERN_STAT_RESP_TX_RNR_NAK, set), (Counts{2, 1, 1}));
}

TEST_F(StatsCommands, WhatWasCountedStays)
{
	const uint32_t set = create();
	ASSERT_EQ(bind(qp_->number, set), TERN_AQ_OK);
	write(*qp_);
	const uint32_t second = create();
	ASSERT_EQ(bind(qp_->number, second), TERN_AQ_OK);
	write(*qp_);
	ASSERT_EQ(bind(qp_->number, 0), TERN_AQ_OK);
	write(*qp_);
	EXPECT_EQ(counts(TERN_STAT_ROCE_TX_PACKETS, set), (Counts{9, 3, 3}));
	EXPECT_EQ(count(TERN_STAT_ROCE_TX_PACKETS, second), 3u);
}

TEST_F(StatsCommands, ASetLivesAsLongAsItsQps)
{
	const uint32_t set = create();
	ASSERT_EQ(bind(qp_->number, set), TERN_AQ_OK);
	ASSERT_EQ(bind(other_->number, set), TERN_AQ_OK);
	EXPECT_EQ(destroy(set), TERN_AQ_BUSY);
	ASSERT_EQ(bind(other_->number, 0), TERN_AQ_OK);
	EXPECT_EQ(destroy(set), TERN_AQ_BUSY);
	ASSERT_EQ(bind(qp_->number, set), TERN_AQ_OK); /* once more changes nothing */
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	EXPECT_EQ(destroy(set), TERN_AQ_OK);
	EXPECT_EQ(destroy(set), TERN_AQ_BAD_OBJECT);
}

TEST_F(StatsCommands, WrongNumbersAreRefused)
{
	const uint32_t set = create();
	EXPECT_EQ(bind(0xabcdef, set), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(bind(qp_->number, set + 1), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(bind(qp_->number, TERN_STATS_UNBOUND), TERN_AQ_BAD_OBJECT);
	auto c = make_command(TERN_AQ_QUERY_STATS);
	c.query_stats.iova = host_.memory.alloc(4096);
	c.query_stats.count = 1;
	c.query_stats.set = set + 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_OBJECT);
	c.query_stats.set = set;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
}

TEST_F(StatsCommands, ThereAreNotEndlesslyMany)
{
	const auto attr = driver_.command(make_command(TERN_AQ_QUERY_DEVICE)).device;
	for (uint32_t i = 0; i < attr.max_stats_sets.get(); i++)
		ASSERT_NE(create(), 0u);
	EXPECT_EQ(driver_.status_of(make_command(TERN_AQ_CREATE_STATS)), TERN_AQ_NO_RESOURCE);
}

/* A QP that goes to ERR sends the responses that it owes, and its set counts them. */
TEST_F(StatsCommands, WhatTheEndOfAQpSends)
{
	const uint32_t set = create();
	ASSERT_EQ(bind(qp_->number, set), TERN_AQ_OK);
	qp_->post_recv(mr_->sge(0, 64));
	host_.wire.accept_only(0);
	give({.opcode = Opcode::RcSendOnly, .psn = kRqPsn, .ack_request = true, .qpn = qp_->number},
	     path());
	host_.wire.accept_all();
	ASSERT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(counts(TERN_STAT_ROCE_TX_PACKETS, set), (Counts{1, 0, 1}));
}

TEST_F(StatsCommands, ReservedField)
{
	auto c = make_command(TERN_AQ_DESTROY_STATS);
	c.object.id = create();
	c.object.rsvd = 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
}

} // namespace
} // namespace tern::test
