// SPDX-License-Identifier: GPL-2.0-or-later
/* A GID with VLAN 0, as that of a net_device for priority-tagged frames has: its packets carry a
 * tag, but belong to the network of untagged ones. */
#include "qemu/rnic/formats/headers.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kQkey = 0x11223344;
constexpr Gid kTaggedGid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 1, 1}};
constexpr uint32_t kTagged = 1; /* index in the GID table */
constexpr uint8_t kPriority = 5;

class GidVlan : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		driver_.set_gid(kTagged, TERN_GID_ROCE_V2, kTaggedGid, 0);
	}
	void connect()
	{
		qp_ = make_qp();
		Connection c = connection();
		c.sgid_index = kTagged;
		c.sl = kPriority;
		qp_->connect(c);
	}
	void make_ud()
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = TERN_QPT_UD;
		qp_ = driver_.create_qp(options);
		qp_->start(kQkey, kSqPsn);
		for (int i = 0; i < 4; i++)
			qp_->post_recv(mr_->sge(0x10000, 100));
	}
	/** The path of a packet to @dgid that arrives in @vlan. */
	static AddressVector path_to(const Gid &dgid, uint16_t vlan)
	{
		AddressVector av = path();
		av.dgid = dgid;
		av.vlan = vlan;
		av.sl = kPriority;
		return av;
	}
	void give_write(uint32_t n, uint16_t vlan)
	{
		TestPacket p{.opcode = Opcode::RcWriteOnly,
		             .psn = psn_after(kRqPsn, n),
		             .ack_request = true,
		             .payload = content(0, 32)};
		p.ext.reth = {mr_->va, mr_->key, 32};
		give(p, path_to(kTaggedGid, vlan));
	}
	void give_datagram(const Gid &dgid, uint16_t vlan)
	{
		TestPacket p{.opcode = Opcode::RcSendOnly, .service = Service::Ud};
		p.ext.deth = {kQkey, kPeerQpn};
		give(p, path_to(dgid, vlan));
	}
	/** The VLAN in the CQE of a datagram to @dgid that arrives in @vlan. */
	uint16_t reported(const Gid &dgid, uint16_t vlan)
	{
		give_datagram(dgid, vlan);
		const auto cqes = cq_->drain();
		EXPECT_EQ(cqes.size(), 1u);
		return cqes.empty() ? uint16_t{0x1234} : cqes[0].vlan.get();
	}
	/** The tag of the only frame that the card has sent. */
	uint16_t sent_tag()
	{
		const auto frame = host_.wire.take();
		headers::Ethernet eth{};
		headers::Vlan tag{};
		headers::Reader in(frame);
		EXPECT_TRUE(in.take(eth) && in.take(tag));
		EXPECT_EQ(eth.ethertype.get(), headers::kEtherVlan);
		EXPECT_TRUE(host_.wire.frames().empty());
		return tag.tci.get();
	}
};

TEST_F(GidVlan, SendsWithAPriorityTag)
{
	connect();
	qp_->post_send({.opcode = TERN_OP_SEND, .sges = {mr_->sge(0, 8)}});
	run();
	EXPECT_EQ(sent_tag(), kPriority << 13);
}

TEST_F(GidVlan, ConnectionReceivesWhatIsInNoVlan)
{
	connect();
	give_write(0, 0);
	EXPECT_EQ(sent_tag(), kPriority << 13); /* of the ACK */
	give_write(1, kNoVlan);
	EXPECT_EQ(stat(TERN_STAT_RESP_WRITES), 2u);
	give_write(2, 7);
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_ADDR), 1u);
	EXPECT_EQ(stat(TERN_STAT_RESP_WRITES), 2u);
}

/* The CQE tells the VLAN of the GID, by which the host finds the net_device. */
TEST_F(GidVlan, DatagramsInNoVlan)
{
	make_ud();
	for (const uint16_t vlan : {uint16_t{0}, kNoVlan})
		EXPECT_EQ(reported(kCardGid, vlan), kNoVlan);
	EXPECT_EQ(reported(kTaggedGid, 0), kPriority << 13);
	EXPECT_EQ(reported(kTaggedGid, kNoVlan), 0);
	give_datagram(kTaggedGid, 7);
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_ADDR), 1u);
}

TEST_F(GidVlan, DatagramToItself)
{
	make_ud();
	tern_hw_ud_seg to{};
	std::ranges::copy(kTaggedGid.bytes, to.dgid);
	std::ranges::copy(kCardMac, to.dmac);
	to.sgid_index = kTagged;
	to.hop_limit = 1;
	to.dest_qpn = qp_->number;
	to.qkey = kQkey;
	to.udp_sport = 0xc000;
	qp_->post_send({.sges = {mr_->sge(0, 30)}, .to = to});
	run();
	EXPECT_EQ(cq_->drain().size(), 2u);
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_ADDR), 0u);
}

/* An entry with a VLAN takes only frames with its tag. */
TEST_F(GidVlan, OtherVlansAreApart)
{
	driver_.set_gid(kTagged, TERN_GID_ROCE_V2, kTaggedGid, 7);
	make_ud();
	for (const uint16_t vlan : {uint16_t{0}, kNoVlan})
		give_datagram(kTaggedGid, vlan);
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_ADDR), 2u);
	EXPECT_EQ(reported(kTaggedGid, 7), kPriority << 13 | 7);
}

} // namespace
} // namespace tern::test
