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

	std::unique_ptr<HostQp> make_ethernet(tern_hw_qp_type type)
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = static_cast<uint8_t>(type);
		auto qp = driver_.create_qp(options);
		for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
			EXPECT_EQ(qp->set_state(state), TERN_AQ_OK);
		for (int i = 0; i < 4; i++)
			qp->post_recv(mr_->sge(0x10000, 2048));
		return qp;
	}
	/** An empty UDP datagram to the card, whose checksums are right. */
	static std::vector<std::byte> udp_frame()
	{
		constexpr std::array<uint8_t, 42> kFrame{
		        2,    0,    0, 0,    0,  1, 2,    0,   0,  0,  0,    2,
		        8,    0,                                                   /* Ethernet */
		        0x45, 0,    0, 28,   0,  0, 0,    0,   64, 17, 0x66, 0xcf, /* IPv4 */
		        10,   0,    0, 2,    10, 0, 0,    1,                       /* addresses */
		        3,    0xe8, 3, 0xe9, 0,  8, 0xe4, 0x0a};                   /* UDP */
		const auto bytes = std::as_bytes(std::span(kFrame));
		std::vector<std::byte> frame(bytes.begin(), bytes.end());
		frame.resize(60);
		return frame;
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

/* What the port counts of a frame is in the set of the QP that gets it. */
TEST_F(StatsCommands, FramesThatArriveCountForTheirQp)
{
	const uint32_t set = create();
	ASSERT_EQ(bind(qp_->number, set), TERN_AQ_OK);
	receive(*qp_, kRqPsn);
	receive(*other_, kRqPsn);
	EXPECT_EQ(counts(TERN_STAT_RX_FRAMES, set), (Counts{2, 1, 1}));
	EXPECT_EQ(counts(TERN_STAT_RX_BYTES, set), counts(TERN_STAT_ROCE_RX_BYTES, set));
}

TEST_F(StatsCommands, FramesOfTheEthernetFunction)
{
	card_.receive(udp_frame()); /* for nobody */
	const auto eth = make_ethernet(TERN_QPT_ETH);
	const uint32_t set = create();
	ASSERT_EQ(bind(eth->number, set), TERN_AQ_OK);
	auto bad = udp_frame();
	bad[41] ^= std::byte{1};
	card_.receive(udp_frame());
	card_.receive(bad);
	for (const auto which : {TERN_STAT_RX_FRAMES, TERN_STAT_RX_BYTES})
		EXPECT_EQ(count(which, set), 2 * count(which, TERN_STATS_UNBOUND));
	EXPECT_EQ(counts(TERN_STAT_ETH_RX_NO_BUFFER, set), (Counts{1, 1, 0}));
	EXPECT_EQ(counts(TERN_STAT_ETH_RX_CSUM_OK, set), (Counts{1, 0, 1}));
	EXPECT_EQ(counts(TERN_STAT_ETH_RX_CSUM_BAD, set), (Counts{1, 0, 1}));
	EXPECT_EQ(counts(TERN_STAT_ETH_RX_FRAMES, set), (Counts{2, 0, 2}));
}

/* The copy of a sniffer is no frame that arrives. */
TEST_F(StatsCommands, FramesOfRawQps)
{
	const auto raw = make_ethernet(TERN_QPT_RAW), sniffer = make_ethernet(TERN_QPT_RAW);
	const uint32_t set = create(), copies = create();
	ASSERT_EQ(bind(raw->number, set), TERN_AQ_OK);
	ASSERT_EQ(bind(sniffer->number, copies), TERN_AQ_OK);
	auto c = make_command(TERN_AQ_CREATE_FLOW);
	c.create_flow.qpn = raw->number;
	c.create_flow.type = TERN_FLOW_NORMAL;
	ASSERT_EQ(driver_.status_of(c), TERN_AQ_OK);
	c.create_flow.qpn = sniffer->number;
	c.create_flow.type = TERN_FLOW_SNIFFER;
	ASSERT_EQ(driver_.status_of(c), TERN_AQ_OK);
	card_.receive(udp_frame());
	EXPECT_EQ(counts(TERN_STAT_RX_FRAMES, set), (Counts{1, 0, 1}));
	EXPECT_EQ(count(TERN_STAT_RX_FRAMES, copies), 0u);
	EXPECT_EQ(count(TERN_STAT_RAW_RX_FRAMES, copies), 1u);
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
