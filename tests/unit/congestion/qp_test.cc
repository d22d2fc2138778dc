// SPDX-License-Identifier: GPL-2.0-or-later
/* Congestion control of QPs: as notification point they send CNPs, as reaction point they obey. */
#include <cmath>

#include "qemu/rnic/formats/headers.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1000 * kUs;
constexpr size_t kMtu = 256;
constexpr uint8_t kCe = kEcnCe;

class Congestion : public OneCard {
protected:
	explicit Congestion(const Rnic::Config &config = {.mac = kCardMac}) : OneCard(config) {}

	void SetUp() override { connect(TERN_QPT_RC); }

	void connect(tern_hw_qp_type type, tern_hw_gid_type gid = TERN_GID_ROCE_V2,
	             uint8_t traffic_class = 0x69)
	{
		if (!cq_)
			set_up_card(10);
		driver_.set_gid(0, gid, kCardGid, vlan_);
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = type;
		options.sq_log_size = 8;
		qp_ = driver_.create_qp(options);
		Connection c = connection();
		c.traffic_class = traffic_class;
		c.sl = kSl;
		qp_->connect(c);
		params_.rp_timer_slack = 0;
		set();
	}
	void set() { ASSERT_TRUE(card_.set_congestion(params_)); }

	/** A WRITE of one packet of the peer; it arrives with the ECN field @ecn. */
	void receive(uint8_t ecn, Service service = Service::Rc)
	{
		TestPacket p{.opcode = Opcode::RcWriteOnly,
		             .service = service,
		             .psn = psn_after(kRqPsn, received_++),
		             .payload = content(0, kMtu)};
		p.ext.reth = {mr_->va, mr_->key, kMtu};
		AddressVector av = path();
		av.traffic_class = ecn;
		av.vlan = vlan_;
		give(p, av);
	}
	void receive_cnp(uint32_t qpn = 0)
	{
		std::vector<std::byte> out(kMaxRoceFrame);
		Bth bth;
		bth.opcode = kCnpOpcode;
		bth.becn = true;
		bth.dest_qpn = qpn ? qpn : qp_->number;
		FrameBuilder builder(out, PathHeader(path()), bth, {}, 0);
		card_.receive(builder.finish());
		run();
	}
	/** The packets sent since the last call. */
	std::vector<Packet> packets()
	{
		frames_.clear();
		std::vector<Packet> all;
		for (auto frame = host_.wire.take(); !frame.empty(); frame = host_.wire.take()) {
			frames_.push_back(std::move(frame));
			const auto parsed = parse(frames_.back());
			EXPECT_TRUE(std::holds_alternative<Packet>(parsed));
			all.push_back(std::get<Packet>(parsed));
		}
		return all;
	}
	size_t cnps()
	{
		const auto all = packets();
		return static_cast<size_t>(std::ranges::count_if(
		        all, [](const Packet &p) { return p.bth.opcode == kCnpOpcode; }));
	}
	/** The PCP of a frame on the VLAN. */
	unsigned priority_in_tag(const std::vector<std::byte> &frame) const
	{
		constexpr size_t kTag = 12; /* behind the addresses */
		EXPECT_EQ(frame[kTag], std::byte{0x81});
		EXPECT_EQ(frame[kTag + 1], std::byte{0});
		EXPECT_EQ(frame[kTag + 2] & std::byte{0x1f}, std::byte{0});
		EXPECT_EQ(frame[kTag + 3], static_cast<std::byte>(vlan_));
		return std::to_integer<unsigned>(frame[kTag + 2]) >> 5;
	}
	void post(uint32_t length, uint8_t opcode = TERN_OP_WRITE)
	{
		qp_->post_send({.opcode = opcode,
		                .remote_addr = 0x1000,
		                .rkey = 0x55,
		                .sges = {mr_->sge(0, length)}});
	}
	/** The peer acknowledges all that was sent. */
	void acknowledge(const std::vector<Packet> &all)
	{
		if (all.empty())
			return;
		give_ack(all.back().bth.psn.value());
	}
	void give_ack(uint32_t psn)
	{
		TestPacket ack{.psn = psn};
		ack.ext.aeth = {kAethAck | kCreditsInvalid, 0};
		give(ack);
	}
	/** Mb/s that the QP sends in the next @ns, always with something to send. */
	double rate_over(uint64_t ns)
	{
		const uint64_t before = stat(TERN_STAT_ROCE_TX_BYTES);
		for (const uint64_t end = host_.clock.now() + ns; host_.clock.now() < end;) {
			for (const auto &cqe : cq_->drain())
				qp_->sq_ci = cqe.wqe_index.get() + 1;
			while (qp_->send_room() > 8)
				post(16 * kMtu);
			pass(10 * kUs);
			acknowledge(packets());
		}
		return static_cast<double>(stat(TERN_STAT_ROCE_TX_BYTES) - before) * 8000 /
		       static_cast<double>(ns);
	}

	static constexpr uint8_t kSl = 3;

	CongestionParameters params_;
	uint16_t vlan_ = kNoVlan; /* of the QPs that connect() makes */
	uint32_t received_ = 0;
	std::vector<std::vector<std::byte>> frames_;
};

/* ---- notification point ---- */

TEST_F(Congestion, AMarkedPacketGetsACnp)
{
	receive(kCe);
	const auto all = packets();
	ASSERT_EQ(all.size(), 1u);
	const Packet &cnp = all[0];
	EXPECT_EQ(cnp.bth.opcode, kCnpOpcode);
	EXPECT_TRUE(cnp.bth.becn);
	EXPECT_FALSE(cnp.bth.ack_request || cnp.bth.solicited || cnp.bth.fecn);
	EXPECT_EQ(cnp.bth.psn, Psn(0));
	EXPECT_EQ(cnp.bth.dest_qpn, kPeerQpn);
	EXPECT_EQ(cnp.path.dgid, kPeerGid);
	EXPECT_EQ(cnp.path.dmac, kPeerMac);
	EXPECT_EQ(cnp.path.traffic_class, 48 << 2);
	/* BTH, 16 zero bytes, ICRC */
	const auto &frame = frames_[0];
	EXPECT_EQ(frame.size(), 14u + 20 + 8 + 12 + 16 + 4);
	EXPECT_TRUE(std::all_of(frame.end() - 20, frame.end() - 4,
	                        [](std::byte b) { return b == std::byte{0}; }));
	EXPECT_EQ(stat(TERN_STAT_NP_ECN_MARKED), 1u);
	EXPECT_EQ(stat(TERN_STAT_NP_CNP_SENT), 1u);
	EXPECT_EQ(mr_->read(0, kMtu), content(0, kMtu));
}

/* That of the GID, as for all packets of the connection. */
TEST_F(Congestion, CnpHasTheMacOfTheGid)
{
	constexpr Mac kUpperMac{2, 0, 0, 0, 0, 0x11};
	driver_.set_gid(0, TERN_GID_ROCE_V2, kCardGid, kNoVlan, kUpperMac);
	qp_ = make_qp();
	qp_->connect(connection());
	receive(kCe);
	const auto all = packets();
	ASSERT_EQ(all.size(), 1u);
	EXPECT_EQ(all[0].bth.opcode, kCnpOpcode);
	EXPECT_EQ(all[0].path.smac, kUpperMac);
}

/* A GID without a MAC has the port's at the time of the address vector, for all packets. */
TEST_F(Congestion, CnpHasTheMacOfTheOtherPackets)
{
	constexpr Mac kNewMac{2, 0, 0, 0, 0, 0x22};
	auto c = make_command(TERN_AQ_SET_ETH);
	c.set_eth.mask = TERN_ETH_MAC;
	std::ranges::copy(kNewMac, c.set_eth.mac);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	AddressVector av = path();
	av.traffic_class = kCe;
	av.dmac = kNewMac;
	TestPacket p{.opcode = Opcode::RcWriteOnly,
	             .psn = kRqPsn,
	             .ack_request = true,
	             .payload = content(0, kMtu)};
	p.ext.reth = {mr_->va, mr_->key, kMtu};
	give(p, av);
	const auto all = packets();
	ASSERT_EQ(all.size(), 2u);
	EXPECT_EQ(all[0].bth.opcode, kCnpOpcode);
	EXPECT_EQ(all[0].path.smac, kCardMac);
	EXPECT_EQ(all[1].path.smac, kCardMac);
}

TEST_F(Congestion, UnmarkedPacketsGetNone)
{
	for (const uint8_t ecn : {0, 1, 2})
		receive(ecn);
	EXPECT_EQ(cnps(), 0u);
	EXPECT_EQ(stat(TERN_STAT_NP_ECN_MARKED), 0u);
}

TEST_F(Congestion, OneCnpInAnInterval)
{
	params_.np_min_time_between_cnps = 50;
	set();
	const uint64_t begin = host_.clock.now();
	receive(kCe);
	receive(kCe);
	EXPECT_EQ(cnps(), 1u);
	host_.clock.advance_to(begin + 50 * kUs - 1);
	receive(kCe);
	EXPECT_EQ(cnps(), 0u);
	/* The interval is over, but what is marked was before. */
	pass(1);
	EXPECT_EQ(cnps(), 0u);
	receive(0);
	EXPECT_EQ(cnps(), 0u);
	receive(kCe);
	EXPECT_EQ(cnps(), 1u);
	EXPECT_EQ(stat(TERN_STAT_NP_ECN_MARKED), 4u);
	EXPECT_EQ(stat(TERN_STAT_NP_CNP_SENT), 2u);
}

TEST_F(Congestion, TheIntervalIsThatOfAQp)
{
	receive(kCe);
	auto other = make_qp();
	other->connect(connection());
	std::swap(qp_, other);
	received_ = 0;
	receive(kCe);
	EXPECT_EQ(cnps(), 2u);
}

TEST_F(Congestion, UcSendsCnpsToo)
{
	connect(TERN_QPT_UC);
	receive(kCe, Service::Uc);
	EXPECT_EQ(cnps(), 1u);
}

TEST_F(Congestion, ACnpThatFindsNoRoomGoesLater)
{
	host_.wire.roads[std::bit_cast<std::array<std::byte, 6>>(kPeerMac)] = {3, false};
	receive(kCe);
	EXPECT_EQ(cnps(), 0u);
	EXPECT_EQ(stat(TERN_STAT_NP_CNP_SENT), 0u);
	host_.wire.roads.clear();
	card_.wire_ready(3);
	run();
	EXPECT_EQ(cnps(), 1u);
}

TEST_F(Congestion, DscpOfCnps)
{
	params_.np_cnp_dscp = 11;
	set();
	receive(kCe);
	EXPECT_EQ(packets().at(0).path.traffic_class, 11 << 2);
}

TEST_F(Congestion, PriorityOfCnps)
{
	vlan_ = 7;
	connect(TERN_QPT_RC);
	params_.np_min_time_between_cnps = 0;
	/* The highest one, too, as the priority has three bits. */
	for (const auto &[mode, prio, expected] :
	     {std::array{0u, 6u, 6u}, {0u, 7u, 7u}, {0u, 0u, 0u}, {1u, 6u, 0u + kSl}}) {
		params_.np_cnp_prio_mode = mode;
		params_.np_cnp_prio = prio;
		set();
		receive(kCe);
		ASSERT_EQ(cnps(), 1u);
		EXPECT_EQ(priority_in_tag(frames_.at(0)), expected);
	}
	/* Data has the QP's, whatever that of CNPs is. */
	post(kMtu);
	run();
	ASSERT_EQ(packets().size(), 1u);
	EXPECT_EQ(priority_in_tag(frames_.at(0)), kSl);
}

TEST_F(Congestion, NoCnpsWhenTheNotificationPointIsOff)
{
	params_.np_enable = 0;
	set();
	receive(kCe);
	EXPECT_EQ(cnps(), 0u);
	EXPECT_EQ(stat(TERN_STAT_NP_ECN_MARKED), 1u);
}

TEST_F(Congestion, AStrangersMarkGetsNoCnp)
{
	TestPacket p{.opcode = Opcode::RcWriteOnly, .psn = kRqPsn, .payload = content(0, kMtu)};
	p.ext.reth = {mr_->va, mr_->key, kMtu};
	AddressVector av = path();
	av.sgid.bytes[15]++;
	av.traffic_class = kCe;
	give(p, av);
	EXPECT_EQ(cnps(), 0u);
}

/* Nothing on a wire that takes bursts marks them; if something did, each packet would count. */
TEST_F(Congestion, EachPacketOfAMarkedBurstCounts)
{
	std::vector<std::byte> out(kMaxRoceFrame);
	Bth bth;
	bth.opcode = static_cast<uint8_t>(Opcode::RcWriteOnly);
	bth.psn = Psn(kRqPsn);
	bth.ack_request = true;
	bth.dest_qpn = qp_->number;
	ExtHeaders ext;
	ext.reth = {mr_->va + 0x1000, mr_->key, 4 * kMtu};
	AddressVector av = path();
	av.traffic_class = kCe;
	FrameBuilder builder(out, PathHeader(av), bth, ext, kMtu);
	const auto data = content(0, 4 * kMtu);
	const std::span<const std::byte> pieces[] = {data};
	card_.receive(builder.head(), pieces, kMtu);
	run();
	EXPECT_EQ(cnps(), 1u);
	EXPECT_EQ(stat(TERN_STAT_NP_ECN_MARKED), 4u);
	EXPECT_EQ(mr_->read(0x1000, 4 * kMtu), data);
}

/* ---- what is marked as capable ---- */

TEST_F(Congestion, DataIsEct)
{
	post(2 * kMtu);
	run();
	for (const Packet &p : packets()) {
		/* The DSCP stays, whatever the ECN field was. */
		EXPECT_EQ(p.path.traffic_class, 0x68 | kEcnEct0);
		acknowledge({p});
	}
	receive(0); /* asks for no ACK */
	TestPacket p{.opcode = Opcode::RcReadRequest, .psn = psn_after(kRqPsn, received_)};
	p.ext.reth = {mr_->va, mr_->key, kMtu};
	give(p);
	const auto responses = packets();
	ASSERT_EQ(responses.size(), 1u);
	EXPECT_EQ(responses[0].path.traffic_class, 0x68 | kEcnEct0);
}

TEST_F(Congestion, UcDataIsEct)
{
	connect(TERN_QPT_UC);
	post(2 * kMtu);
	run();
	const auto all = packets();
	EXPECT_EQ(all.size(), 2u);
	for (const Packet &p : all)
		EXPECT_EQ(p.path.traffic_class, 0x68 | kEcnEct0);
	params_.rp_algorithm = static_cast<uint32_t>(CongestionAlgorithm::None);
	set();
	post(kMtu);
	run();
	EXPECT_EQ(packets().at(0).path.traffic_class, 0x69);
}

TEST_F(Congestion, AcknowledgementsAreNot)
{
	TestPacket p{.opcode = Opcode::RcWriteOnly,
	             .psn = kRqPsn,
	             .ack_request = true,
	             .payload = content(0, kMtu)};
	p.ext.reth = {mr_->va, mr_->key, kMtu};
	give(p);
	EXPECT_EQ(packets().at(0).path.traffic_class, 0x69);
}

TEST_F(Congestion, NothingIsWhenOff)
{
	params_.rp_algorithm = static_cast<uint32_t>(CongestionAlgorithm::None);
	set();
	post(kMtu);
	run();
	EXPECT_EQ(packets().at(0).path.traffic_class, 0x69);
}

TEST_F(Congestion, Ipv6DataIsEct)
{
	constexpr Gid kCard6{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
	constexpr Gid kPeer6{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
	driver_.set_gid(0, TERN_GID_ROCE_V2, kCard6);
	qp_ = make_qp();
	Connection c = connection();
	c.dgid = kPeer6;
	c.traffic_class = 0x69;
	qp_->connect(c);
	post(kMtu);
	run();
	EXPECT_EQ(packets().at(0).path.traffic_class, 0x68 | kEcnEct0);
}

TEST_F(Congestion, RoceV1HasNoEcn)
{
	connect(TERN_QPT_RC, TERN_GID_ROCE_V1);
	post(kMtu);
	run();
	EXPECT_EQ(packets().at(0).path.traffic_class, 0x69);
	AddressVector av = path();
	av.roce_v2 = false;
	av.traffic_class = kCe;
	TestPacket p{.opcode = Opcode::RcWriteOnly, .psn = kRqPsn, .payload = content(0, kMtu)};
	p.ext.reth = {mr_->va, mr_->key, kMtu};
	give(p, av);
	EXPECT_EQ(cnps(), 0u);
	EXPECT_EQ(stat(TERN_STAT_NP_ECN_MARKED), 0u);
}

/* ---- reaction point: a link of 8 Mb/s, so that tests have few packets ---- */

class Reaction : public Congestion {
protected:
	Reaction() : Congestion({.mac = kCardMac, .link_speed_mbps = 8}) {}
	void SetUp() override
	{
		/* It stays as slow as a CNP has made it. */
		params_.rp_time_reset = 100'000;
		params_.rp_byte_reset = 0;
		connect(TERN_QPT_RC);
	}
};

TEST_F(Reaction, ACnpHalvesTheRate)
{
	receive_cnp();
	EXPECT_NEAR(rate_over(50 * kMs), 4, 0.1);
	EXPECT_EQ(stat(TERN_STAT_RP_CNP_HANDLED), 1u);
	EXPECT_EQ(stat(TERN_STAT_RP_CNP_IGNORED), 0u);
	EXPECT_EQ(stat(TERN_STAT_REQ_TIMEOUTS), 0u);
}

TEST_F(Reaction, WithoutCnpsNothingWaits)
{
	post(16 * kMtu);
	run();
	EXPECT_EQ(packets().size(), 16u);
}

TEST_F(Reaction, FramesAreSpread)
{
	receive_cnp();
	post(4 * kMtu);
	run();
	/* Of 4 Mb/s a byte takes 2 us, and the first packet has a RETH. */
	EXPECT_EQ(packets().size(), 1u);
	pass((kMtu + 70) * 2 * kUs);
	EXPECT_EQ(packets().size(), 0u);
	pass(10 * 2 * kUs);
	EXPECT_EQ(packets().size(), 1u);
}

TEST_F(Reaction, TheRateRecovers)
{
	params_.rp_time_reset = 1000;
	set();
	receive_cnp();
	pass(100 * kMs);
	/* Back at the line's rate nothing is limited. */
	post(16 * kMtu);
	run();
	EXPECT_EQ(packets().size(), 16u);
}

TEST_F(Reaction, AWaitEndsWhenTheRateRises)
{
	params_.rp_min_rate = 1;
	set();
	for (int i = 0; i < 5; i++) {
		receive_cnp();
		pass(10 * kUs);
	}
	params_.rp_time_reset = 1000;
	params_.rp_ai_rate = 8;
	params_.rp_threshold = 1;
	set();
	receive_cnp(); /* 1 Mb/s: a frame takes 2.6 ms, but the rate rises each ms */
	post(2 * kMtu);
	run();
	packets();
	pass(2 * kMs);
	EXPECT_EQ(packets().size(), 1u);
}

TEST_F(Reaction, ReadResponsesAreSlowedDownToo)
{
	receive_cnp();
	TestPacket p{.opcode = Opcode::RcReadRequest, .psn = kRqPsn};
	p.ext.reth = {mr_->va, mr_->key, 100 * kMtu};
	give(p);
	const uint64_t before = stat(TERN_STAT_ROCE_TX_BYTES);
	pass(20 * kMs);
	EXPECT_NEAR(static_cast<double>(stat(TERN_STAT_ROCE_TX_BYTES) - before) * 8 / 20'000, 4,
	            0.2);
	/* Each of them once, in order. */
	uint32_t psn = kRqPsn;
	for (const Packet &response : packets()) {
		EXPECT_EQ(response.bth.psn, Psn(psn));
		psn = psn_after(psn, 1);
	}
}

TEST_F(Reaction, RequestsAndReadResponsesTakeTurns)
{
	receive_cnp();
	TestPacket p{.opcode = Opcode::RcReadRequest, .psn = kRqPsn};
	p.ext.reth = {mr_->va, mr_->key, 100 * kMtu};
	give(p);
	post(16 * kMtu);
	pass(20 * kMs);
	size_t requests = 0, responses = 0;
	for (const Packet &packet : packets())
		(packet.info->is_request() ? requests : responses)++;
	EXPECT_GT(requests, 10u);
	EXPECT_GT(responses, 10u);
}

TEST_F(Reaction, UcIsSlowedDown)
{
	connect(TERN_QPT_UC);
	receive_cnp();
	post(100 * kMtu);
	const uint64_t before = stat(TERN_STAT_ROCE_TX_BYTES);
	pass(20 * kMs);
	EXPECT_NEAR(static_cast<double>(stat(TERN_STAT_ROCE_TX_BYTES) - before) * 8 / 20'000, 4,
	            0.2);
}

TEST_F(Reaction, NoBurstsWhileSlow)
{
	host_.wire.borrows = host_.wire.takes_bursts = true;
	receive_cnp();
	post(16 * kMtu);
	run();
	ASSERT_EQ(host_.wire.loans().size(), 1u);
	EXPECT_EQ(host_.wire.loans()[0].segment, 0u);
}

TEST_F(Reaction, IgnoredCnps)
{
	receive_cnp(0x3333); /* no such QP */
	EXPECT_EQ(stat(TERN_STAT_RP_CNP_IGNORED), 1u);
	params_.rp_algorithm = static_cast<uint32_t>(CongestionAlgorithm::None);
	set();
	receive_cnp();
	EXPECT_EQ(stat(TERN_STAT_RP_CNP_IGNORED), 2u);
	EXPECT_EQ(stat(TERN_STAT_RP_CNP_HANDLED), 0u);
	post(16 * kMtu);
	run();
	EXPECT_EQ(packets().size(), 16u);
}

TEST_F(Reaction, AnotherAlgorithmForgetsTheRate)
{
	receive_cnp();
	params_.rp_algorithm = static_cast<uint32_t>(CongestionAlgorithm::None);
	set();
	post(16 * kMtu);
	run();
	EXPECT_EQ(packets().size(), 16u);
}

TEST_F(Reaction, AResetForgetsTheRate)
{
	receive_cnp();
	qp_->set_state(TERN_QPS_RESET);
	qp_->connect(connection());
	qp_->sq_ci = qp_->sq_pi = 0;
	post(16 * kMtu);
	run();
	EXPECT_EQ(packets().size(), 16u);
}

/* ---- round-trip times ---- */

class RoundTrips : public Reaction {
protected:
	void SetUp() override
	{
		params_.rp_algorithm = static_cast<uint32_t>(CongestionAlgorithm::Timely);
		connect(TERN_QPT_RC);
	}
	/** Any round-trip time is below T_low, and makes the rate the highest. */
	void let_any_time_free_the_rate()
	{
		params_.rp_timely_t_low = params_.rp_timely_t_high = 100'000;
		params_.rp_ai_rate = 8;
		set();
	}
	/** A message of the QP, answered after the ACK timer has expired and it was sent again. */
	void time_out()
	{
		post(kMtu);
		run();
		pass(6 * kMs);
		EXPECT_EQ(stat(TERN_STAT_REQ_TIMEOUTS), 1u);
		EXPECT_EQ(packets().size(), 2u);
		give_ack(kSqPsn);
	}
	/** A message of the QP, answered after @ns. */
	void round_trip(uint64_t ns)
	{
		post(kMtu);
		pass(kMs); /* whatever the rate */
		const auto all = packets();
		pass(ns - kMs);
		acknowledge(all);
	}
	bool limited()
	{
		post(16 * kMtu);
		run();
		const auto all = packets();
		acknowledge(all);
		return all.size() < 16;
	}
};

TEST_F(RoundTrips, LongOnesSlowTheQpDown)
{
	for (int i = 0; i < 5; i++)
		round_trip(2 * kMs);
	EXPECT_TRUE(limited());
}

TEST_F(RoundTrips, ShortOnesDoNot)
{
	for (int i = 0; i < 20; i++) {
		post(kMtu);
		run();
		pass(20 * kUs);
		acknowledge(packets());
	}
	EXPECT_FALSE(limited());
}

TEST_F(RoundTrips, ALossHalvesTheRate)
{
	post(4 * kMtu);
	run();
	EXPECT_EQ(packets().size(), 4u);
	TestPacket nak{.psn = kSqPsn};
	nak.ext.aeth = {nak_syndrome(NakCode::PsnSequenceError), 0};
	give(nak);
	/* At 4 Mb/s a byte takes 2 us. */
	EXPECT_EQ(packets().size(), 1u);
	pass((kMtu + 50) * 2 * kUs);
	EXPECT_EQ(packets().size(), 0u);
	pass(50 * 2 * kUs);
	EXPECT_EQ(packets().size(), 1u);
}

TEST_F(RoundTrips, ATimeoutLeavesLittle)
{
	time_out();
	pass(kMs); /* what was sent again has had its time */
	/* A 16th of the rate would be less than the least, 1 Mb/s. There a byte takes 8 us. */
	post(2 * kMtu);
	run();
	EXPECT_EQ(packets().size(), 1u);
	pass((kMtu + 50) * 8 * kUs);
	EXPECT_EQ(packets().size(), 0u);
	pass(50 * 8 * kUs);
	EXPECT_EQ(packets().size(), 1u);
}

/* The answer may be that to the first one. */
TEST_F(RoundTrips, WhatWasSentTwiceIsNotTimed)
{
	let_any_time_free_the_rate();
	time_out();
	EXPECT_TRUE(limited());
}

/* At 1 Mb/s a segment of 32 packets takes 84 ms. */
TEST_F(RoundTrips, ASlowFlowTimesPacketsWithinSegments)
{
	let_any_time_free_the_rate();
	time_out();
	post(16 * kMtu);
	run();
	pass(4 * kMs); /* less than the ACK timeout */
	const auto all = packets();
	EXPECT_EQ(all.size(), 2u);
	acknowledge(all);
	EXPECT_EQ(all.size() + packets().size(), 16u);
}

/* What is being timed when TIMELY is switched off has no controller that could take its time. */
TEST_F(RoundTrips, NothingIsTimedAfterAnotherAlgorithm)
{
	post(kMtu);
	run();
	const auto all = packets();
	ASSERT_EQ(all.size(), 1u);
	params_.rp_algorithm = static_cast<uint32_t>(CongestionAlgorithm::None);
	set();
	acknowledge(all);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_SUCCESS);
	EXPECT_FALSE(limited());
}

/* The times of a controller that is gone are not for the next one, whatever was in between. */
TEST_F(RoundTrips, AnotherAlgorithmForgetsWhatIsTimed)
{
	post(kMtu);
	run();
	const auto all = packets();
	pass(4 * kMs); /* less than the ACK timeout */
	for (const auto algorithm : {CongestionAlgorithm::Dcqcn, CongestionAlgorithm::Timely}) {
		params_.rp_algorithm = static_cast<uint32_t>(algorithm);
		set();
	}
	acknowledge(all);
	EXPECT_FALSE(limited());
}

TEST_F(RoundTrips, CnpsAreIgnored)
{
	receive_cnp();
	EXPECT_FALSE(limited());
	EXPECT_EQ(stat(TERN_STAT_RP_CNP_IGNORED), 1u);
	post(kMtu);
	run();
	EXPECT_EQ(packets().at(0).path.traffic_class, 0x69);
}

TEST_F(Reaction, BothLimitsHold)
{
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_RTS;
	attr.rate_limit.rate = 2000; /* kb/s, less than what the CNP leaves */
	attr.rate_limit.burst = 1000;
	ASSERT_EQ(qp_->modify(TERN_QP_RATE_LIMIT, attr), TERN_AQ_OK);
	receive_cnp();
	EXPECT_NEAR(rate_over(50 * kMs), 2, 0.2);
}

TEST_F(Reaction, ParametersOutOfRangeChangeNothing)
{
	CongestionParameters bad;
	bad.np_cnp_dscp = 64;
	EXPECT_FALSE(card_.set_congestion(bad));
	receive(kCe);
	EXPECT_EQ(packets().at(0).path.traffic_class, 48 << 2);
}

/* DESTROY_QP sends what is left, in slices of what the card has for commands beside packets. */
TEST_F(Congestion, ACnpKeepsTheBudgetOfDestroy)
{
	constexpr unsigned kSends = 100, kBudget = 16;
	QpOptions options;
	options.pd = pd_;
	options.send_cqn = options.recv_cqn = cq_->number;
	options.sq_log_size = 8;
	const auto busy = driver_.create_qp(options);
	busy->connect(connection());
	connect(TERN_QPT_UC);
	for (HostQp *qp : {busy.get(), qp_.get()}) {
		for (unsigned i = 0; i < kSends; i++)
			qp->post_send({.opcode = TERN_OP_SEND, .sges = {mr_->sge(0, 1)}}, false);
		qp->publish();
	}
	TestPacket p{.opcode = Opcode::RcWriteOnly,
	             .service = Service::Uc,
	             .psn = kRqPsn,
	             .payload = content(0, kMtu)};
	p.ext.reth = {mr_->va, mr_->key, kMtu};
	AddressVector av = path();
	av.traffic_class = kCe;
	give(p, av, false);
	auto destroy = make_command(TERN_AQ_DESTROY_QP);
	destroy.object.id = qp_->number;
	const uint32_t command = driver_.submit(destroy);
	while (!driver_.result(command)) {
		card_.run(kBudget);
		ASSERT_LE(packets().size(), 2 * kBudget);
	}
}

} // namespace
} // namespace tern::test
