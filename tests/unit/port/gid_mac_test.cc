// SPDX-License-Identifier: GPL-2.0-or-later
/* A GID with a MAC of its own, as that of a macvlan has. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kQkey = 0x11223344;
constexpr Mac kUpperMac{2, 0, 0, 0, 0, 0x11};
constexpr Gid kUpperGid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 1, 1}};
constexpr uint32_t kUpper = 1; /* index in the GID table */

class GidMac : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		set_upper(TERN_GID_ROCE_V2);
		qp_ = make_qp();
		Connection c = connection();
		c.sgid_index = kUpper;
		qp_->connect(c);
	}
	void set_upper(tern_hw_gid_type type, const Mac &mac = kUpperMac)
	{
		driver_.set_gid(kUpper, type, kUpperGid, kNoVlan, mac);
	}
	static AddressVector to_upper()
	{
		AddressVector av = path();
		av.dmac = kUpperMac;
		av.dgid = kUpperGid;
		return av;
	}
	void give_write()
	{
		TestPacket p{.opcode = Opcode::RcWriteOnly,
		             .psn = kRqPsn,
		             .ack_request = true,
		             .payload = content(0, 32)};
		p.ext.reth = {mr_->va, mr_->key, 32};
		give(p, to_upper());
	}
	/** The source MAC of the only frame that the card has sent. */
	Mac source()
	{
		EXPECT_EQ(host_.wire.frames().size(), 1u);
		Mac mac{};
		std::memcpy(mac.data(), host_.wire.take().data() + mac.size(), mac.size());
		return mac;
	}
	void make(tern_hw_qp_type type)
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = static_cast<uint8_t>(type);
		qp_ = driver_.create_qp(options);
	}
	void make_ethernet(uint32_t rx_mode)
	{
		make(TERN_QPT_ETH);
		for (const auto state : {TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS})
			EXPECT_EQ(qp_->set_state(state), TERN_AQ_OK);
		auto c = make_command(TERN_AQ_SET_ETH);
		c.set_eth.mask = TERN_ETH_RX_MODE;
		c.set_eth.rx_mode = rx_mode;
		EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
		qp_->post_recv(mr_->sge(0x10000, 2048));
	}
	/** Not RoCE: of an experimental ethertype. */
	static std::vector<std::byte> frame_to_upper()
	{
		std::vector<std::byte> frame(64);
		std::memcpy(frame.data(), kUpperMac.data(), kUpperMac.size());
		frame[12] = std::byte{0x88};
		frame[13] = std::byte{0xb5};
		return frame;
	}
	void send_datagram(uint8_t sgid_index, const Mac &dmac, const Gid &dgid)
	{
		tern_hw_ud_seg to{};
		std::ranges::copy(dgid.bytes, to.dgid);
		std::ranges::copy(dmac, to.dmac);
		to.sgid_index = sgid_index;
		to.hop_limit = 1;
		to.dest_qpn = qp_->number;
		to.qkey = kQkey;
		to.udp_sport = 0xc000;
		SendRequest request;
		request.sges = {mr_->sge(0, 30)};
		request.to = to;
		qp_->post_send(request);
		run();
	}
};

TEST_F(GidMac, ConnectionSendsFromIt)
{
	qp_->post_send({.opcode = TERN_OP_SEND, .sges = {mr_->sge(0, 8)}});
	run();
	EXPECT_EQ(source(), kUpperMac);
}

TEST_F(GidMac, DatagramIsSentFromIt)
{
	make(TERN_QPT_UD);
	qp_->start(kQkey, kSqPsn);
	send_datagram(kUpper, kPeerMac, kPeerGid);
	EXPECT_EQ(source(), kUpperMac);
	send_datagram(0, kPeerMac, kPeerGid);
	EXPECT_EQ(source(), kCardMac);
}

TEST_F(GidMac, ConnectionReceivesAtIt)
{
	give_write();
	EXPECT_EQ(source(), kUpperMac); /* of the ACK */
	EXPECT_EQ(stat(TERN_STAT_RESP_WRITES), 1u);
}

/* An entry that has got another MAC, or none, takes no frames to the old one. */
TEST_F(GidMac, ChangedEntryReceivesNoMoreAtTheOldOne)
{
	for (const auto type : {TERN_GID_ROCE_V2, TERN_GID_NONE}) {
		const uint64_t before = stat(TERN_STAT_RX_FILTERED);
		set_upper(type, type == TERN_GID_NONE ? kUpperMac : Mac{});
		give_write();
		EXPECT_EQ(stat(TERN_STAT_RX_FILTERED), before + 1);
	}
	EXPECT_TRUE(host_.wire.frames().empty());
}

TEST_F(GidMac, StaysWhileAnotherEntryHasIt)
{
	driver_.set_gid(2, TERN_GID_ROCE_V1, kUpperGid, kNoVlan, kUpperMac);
	driver_.set_gid(2, TERN_GID_NONE, {});
	give_write();
	EXPECT_EQ(stat(TERN_STAT_RX_FILTERED), 0u);
}

/* From one GID of the card to another. */
TEST_F(GidMac, Loopback)
{
	make(TERN_QPT_UD);
	qp_->start(kQkey, kSqPsn);
	qp_->post_recv(mr_->sge(0x10000, 100));
	send_datagram(0, kUpperMac, kUpperGid);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[1].opcode, TERN_CQE_RECV);
	EXPECT_TRUE(std::ranges::equal(cqes[1].smac, kCardMac));
	EXPECT_TRUE(host_.wire.frames().empty());
}

/* The stack decides which MACs the Ethernet function listens to: it sets the receive mode. */
TEST_F(GidMac, EthernetFunctionDoesNotListenToIt)
{
	make_ethernet(0);
	card_.receive(frame_to_upper());
	EXPECT_EQ(stat(TERN_STAT_RX_FILTERED), 1u);
	EXPECT_TRUE(cq_->drain().empty());
}

TEST_F(GidMac, PromiscuousEthernetFunctionTakesAllButRoce)
{
	make_ethernet(TERN_ETH_PROMISC);
	card_.receive(frame_to_upper());
	EXPECT_EQ(cq_->drain().size(), 1u);
	qp_->post_recv(mr_->sge(0x10000, 2048));
	give_write();
	EXPECT_TRUE(cq_->drain().empty());
}

TEST_F(GidMac, EthernetFrameToItGoesToTheWire)
{
	make_ethernet(0);
	mr_->write(0, frame_to_upper());
	qp_->post_send({.sges = {mr_->sge(0, 64)}});
	run();
	EXPECT_EQ(host_.wire.take(), frame_to_upper());
}

} // namespace
} // namespace tern::test
