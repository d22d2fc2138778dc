// SPDX-License-Identifier: GPL-2.0-or-later
/* Two peers at different destinations, of which one has no room: what is for the other goes on. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr Mac kSlowMac{2, 0, 0, 0, 0, 3};
constexpr Wire::Destination kSlow = 7;
constexpr uint32_t kMtu = 256;

class Parking : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		std::array<std::byte, 6> slow;
		std::memcpy(slow.data(), kSlowMac.data(), slow.size());
		road_ = &host_.wire.roads.insert({slow, {kSlow, false}}).first->second;
		qp_ = connected(kSlowMac);
		other_ = connected(kPeerMac);
		events();
	}
	std::unique_ptr<HostQp> connected(const Mac &mac)
	{
		auto qp = make_qp();
		Connection c = connection();
		c.dmac = mac;
		qp->connect(c);
		return qp;
	}
	SendRequest write(uint32_t packets) const
	{
		return {.opcode = TERN_OP_WRITE,
		        .remote_addr = 0x1000,
		        .rkey = 77,
		        .sges = {mr_->sge(0, packets * kMtu)}};
	}
	void post(HostQp &qp, uint32_t packets)
	{
		qp.post_send(write(packets));
		run();
	}
	/* The card has nothing to do until something happens. */
	void expect_idle() { EXPECT_FALSE(card_.run(64)); }
	void make_room()
	{
		road_->room = true;
		card_.wire_ready(kSlow);
		run();
	}
	/* PSNs, counted from the first, of what was sent to @mac since the last call. */
	std::vector<uint32_t> sent_to(const Mac &mac)
	{
		std::vector<uint32_t> psns;
		for (const auto &frame : host_.wire.frames()) {
			const auto parsed = parse(frame);
			const auto &packet = std::get<Packet>(parsed);
			if (packet.path.dmac == mac)
				psns.push_back((packet.bth.psn.value() - kSqPsn) & 0xffffff);
		}
		return psns;
	}

	RecordedWire::Road *road_ = nullptr;
	std::unique_ptr<HostQp> other_;
	using Psns = std::vector<uint32_t>;
};

TEST_F(Parking, OthersGoOnAndNothingIsLostOrRepeated)
{
	post(*qp_, 3);
	post(*other_, 2);
	post(*qp_, 1);
	EXPECT_EQ(sent_to(kPeerMac), (Psns{0, 1}));
	EXPECT_EQ(sent_to(kSlowMac), Psns{});
	expect_idle();
	card_.wire_ready(0);
	expect_idle();
	make_room();
	EXPECT_EQ(sent_to(kSlowMac), (Psns{0, 1, 2, 3}));
	EXPECT_EQ(stat(TERN_STAT_ROCE_TX_PACKETS), 6u);
	EXPECT_EQ(stat(TERN_STAT_TX_FRAMES), 6u);
	EXPECT_EQ(stat(TERN_STAT_REQ_RETRANSMITS), 0u);
}

/* Each found out that there is no room; when there is some again and the first fills it, the others
 * need not. */
TEST_F(Parking, ManyToOneDestinationBuildNoFramesInVain)
{
	std::vector<std::unique_ptr<HostQp>> many;
	for (int i = 0; i < 50; i++) {
		many.push_back(connected(kSlowMac));
		post(*many.back(), 1);
	}
	EXPECT_EQ(host_.wire.refused(), 50u);
	card_.wire_ready(kSlow);
	run();
	EXPECT_EQ(host_.wire.refused(), 51u);
	make_room();
	EXPECT_EQ(sent_to(kSlowMac), Psns(50, 0));
}

TEST_F(Parking, Responses)
{
	for (HostQp *qp : {qp_.get(), other_.get()}) {
		qp->post_recv(mr_->sge(0, 100));
		AddressVector av = path();
		av.smac = qp == qp_.get() ? kSlowMac : kPeerMac;
		TestPacket read{.opcode = Opcode::RcReadRequest, .psn = kRqPsn, .qpn = qp->number};
		read.ext.reth = {kVa, mr_->key, 100 * kMtu};
		give(read, av);
		give({.opcode = Opcode::RcSendOnly,
		      .psn = psn_after(kRqPsn, 100),
		      .ack_request = true,
		      .qpn = qp->number},
		     av);
	}
	EXPECT_EQ(sent_to(kPeerMac).size(), 101u);
	EXPECT_EQ(sent_to(kSlowMac), Psns{});
	expect_idle();
	make_room();
	EXPECT_EQ(sent_to(kSlowMac).size(), 101u);
	EXPECT_EQ(stat(TERN_STAT_ROCE_TX_PACKETS), 202u);
}

/* It answers one half of a turn and sends in the other; both wait. */
TEST_F(Parking, IdleWithResponsesAndRequests)
{
	road_->room = true;
	TestPacket read{.opcode = Opcode::RcReadRequest, .psn = kRqPsn};
	read.ext.reth = {kVa, mr_->key, 100 * kMtu};
	give(read, path(), false);
	qp_->post_send(write(100));
	host_.wire.accept_only(9); /* 8 responses, then a request */
	run();
	expect_idle();
	host_.wire.accept_all();
	card_.wire_ready(kSlow);
	run();
	EXPECT_EQ(sent_to(kSlowMac).size(), 200u);
}

TEST_F(Parking, DestroyedWhileParked)
{
	post(*qp_, 3);
	const auto neighbour = connected(kSlowMac);
	post(*neighbour, 2);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	make_room();
	EXPECT_EQ(sent_to(kSlowMac), (Psns{0, 1}));
}

/* There is room again, but the card has not heard of it yet: all that was posted goes out. */
TEST_F(Parking, DestroyedWhenThereIsRoom)
{
	QpOptions options;
	options.pd = pd_;
	options.send_cqn = options.recv_cqn = cq_->number;
	options.type = TERN_QPT_UD;
	const auto ud = driver_.create_qp(options);
	ud->start(1, kSqPsn);
	tern_hw_ud_seg to{};
	std::ranges::copy(kPeerGid.bytes, to.dgid);
	std::ranges::copy(kSlowMac, to.dmac);
	for (int i = 0; i < 3; i++)
		ud->post_send({.sges = {mr_->sge(0, 100)}, .to = to});
	run();
	EXPECT_EQ(sent_to(kSlowMac), Psns{});
	road_->room = true;
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, ud->number), TERN_AQ_OK);
	EXPECT_EQ(sent_to(kSlowMac), (Psns{0, 1, 2}));
}

/* As above, of acknowledgements before RESET. */
TEST_F(Parking, ResetWhenThereIsRoom)
{
	AddressVector av = path();
	av.smac = kSlowMac;
	for (uint32_t i = 0; i < 3; i++) {
		TestPacket p{.opcode = Opcode::RcFetchAdd, .psn = psn_after(kRqPsn, i)};
		p.ext.atomic = {kVa + 8 * i, mr_->key, 1, 0};
		give(p, av);
	}
	EXPECT_EQ(sent_to(kSlowMac), Psns{});
	road_->room = true;
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	EXPECT_EQ(sent_to(kSlowMac).size(), 3u);
}

TEST_F(Parking, ResetWhileParked)
{
	post(*qp_, 3);
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	make_room();
	EXPECT_EQ(sent_to(kSlowMac), Psns{});
	qp_->forget();
	Connection c = connection();
	c.dmac = kSlowMac;
	qp_->connect(c);
	post(*qp_, 2);
	EXPECT_EQ(sent_to(kSlowMac), (Psns{0, 1}));
}

TEST_F(Parking, ErrorWhileParkedFlushesAtOnce)
{
	post(*qp_, 3);
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	run();
	auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_WR_FLUSH_ERR);
	post(*qp_, 1);
	EXPECT_EQ(cq_->drain().size(), 1u);
	make_room();
	EXPECT_EQ(sent_to(kSlowMac), Psns{});
}

/* The QP retransmits because no ACK arrives, and fails when its retries are used up. */
TEST_F(Parking, RetriesEnd)
{
	host_.wire.accept_only(1);
	road_->room = true;
	post(*qp_, 3);
	pass(10'000'000'000);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].status, TERN_WC_RETRY_EXC_ERR);
	expect_idle();
}

/* What a datagram QP posted first goes first; other QPs do not wait for it. */
TEST_F(Parking, Datagrams)
{
	QpOptions options;
	options.pd = pd_;
	options.send_cqn = options.recv_cqn = cq_->number;
	options.type = TERN_QPT_UD;
	auto mixed = driver_.create_qp(options), free = driver_.create_qp(options);
	mixed->start(1, kSqPsn);
	free->start(1, kSqPsn);
	const auto send = [&](HostQp &qp, const Mac &mac) {
		tern_hw_ud_seg to{};
		std::ranges::copy(kPeerGid.bytes, to.dgid);
		std::ranges::copy(mac, to.dmac);
		qp.post_send({.sges = {mr_->sge(0, 100)}, .to = to});
		run();
	};
	send(*mixed, kPeerMac);
	send(*mixed, kSlowMac);
	send(*mixed, kPeerMac);
	send(*free, kPeerMac);
	EXPECT_EQ(sent_to(kPeerMac), (Psns{0, 0}));
	EXPECT_EQ(cq_->drain().size(), 2u);
	make_room();
	EXPECT_EQ(sent_to(kPeerMac), (Psns{0, 0, 2}));
	EXPECT_EQ(sent_to(kSlowMac), Psns{1});
	EXPECT_EQ(cq_->drain().size(), 2u);
}

/* The inbox of a card for frames to itself is full: only those wait, and not for long. */
TEST_F(Parking, ToItself)
{
	road_->room = true;
	const auto self = connected(kCardMac);
	self->post_send(write(200));
	qp_->post_send(write(200));
	run();
	EXPECT_EQ(sent_to(kSlowMac).size(), 200u);
	EXPECT_EQ(stat(TERN_STAT_ROCE_TX_PACKETS), 400u);
}

} // namespace
} // namespace tern::test
