// SPDX-License-Identifier: GPL-2.0-or-later
/* Multicast groups, alone and in a card. */
#include "qemu/rnic/network/multicast.h"
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr Gid kGroup4{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 129, 2, 3}};
constexpr Mac kGroupMac4{0x01, 0x00, 0x5e, 0x01, 2, 3};
constexpr Gid kGroup6{{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56, 0x78}};
constexpr Mac kGroupMac6{0x33, 0x33, 0x12, 0x34, 0x56, 0x78};
constexpr uint32_t kQkey = 0x1b1b1b1b;

TEST(MulticastMac, OfBothFamilies)
{
	EXPECT_EQ(multicast_mac(kGroup4), kGroupMac4);
	EXPECT_EQ(multicast_mac(kGroup6), kGroupMac6);
}

TEST(MulticastGroups, MembersComeAndGo)
{
	MulticastGroups groups;
	EXPECT_TRUE(groups.attach(kGroup4, 5));
	EXPECT_TRUE(groups.attach(kGroup4, 5)); /* once more changes nothing */
	EXPECT_TRUE(groups.attach(kGroup4, 6));
	EXPECT_EQ(groups.members(kGroup4).size(), 2u);
	EXPECT_TRUE(groups.listens(kGroupMac4));
	EXPECT_FALSE(groups.listens(kGroupMac6));
	EXPECT_FALSE(groups.detach(kGroup6, 5));
	EXPECT_FALSE(groups.detach(kGroup4, 7));
	EXPECT_TRUE(groups.detach(kGroup4, 5));
	EXPECT_TRUE(groups.listens(kGroupMac4));
	unsigned budget = 1;
	EXPECT_TRUE(groups.forget(6, budget));
	EXPECT_FALSE(groups.listens(kGroupMac4));
	EXPECT_TRUE(groups.members(kGroup4).empty());
}

/* Each slice detaches a QP from at most as many groups as its budget allows. */
TEST(MulticastGroups, ForgottenInSlices)
{
	MulticastGroups groups;
	Gid group = kGroup4;
	for (uint8_t i = 0; i < 5; i++) {
		group.bytes[15] = i;
		EXPECT_TRUE(groups.attach(group, 5));
	}
	EXPECT_TRUE(groups.attach(group, 6));
	EXPECT_TRUE(groups.detach(kGroup4, 5) || groups.detach(group, 5));
	unsigned budget = 3;
	EXPECT_FALSE(groups.forget(5, budget));
	EXPECT_EQ(budget, 0u);
	budget = 3;
	EXPECT_TRUE(groups.forget(5, budget));
	EXPECT_EQ(budget, 2u);
	EXPECT_EQ(groups.members(group).size(), 1u);
}

/* Two groups whose addresses share a MAC: it is heard until both are gone. */
TEST(MulticastGroups, SharedMac)
{
	Gid other = kGroup4;
	other.bytes[13] &= 0x7f; /* the bit that the MAC does not hold */
	MulticastGroups groups;
	groups.attach(kGroup4, 5);
	groups.attach(other, 5);
	groups.detach(kGroup4, 5);
	EXPECT_TRUE(groups.listens(kGroupMac4));
	groups.detach(other, 5);
	EXPECT_FALSE(groups.listens(kGroupMac4));
}

TEST(MulticastGroups, Limits)
{
	MulticastGroups groups;
	for (uint32_t qpn = 1; qpn <= MulticastGroups::kMaxQps; qpn++)
		EXPECT_TRUE(groups.attach(kGroup4, qpn));
	EXPECT_FALSE(groups.attach(kGroup4, 0x1000));
	EXPECT_TRUE(groups.attach(kGroup4, 1));

	Gid gid = kGroup6;
	for (size_t n = 1; n < MulticastGroups::kMaxGroups; n++) {
		gid.bytes[4] = static_cast<uint8_t>(n >> 8);
		gid.bytes[5] = static_cast<uint8_t>(n);
		EXPECT_TRUE(groups.attach(gid, 1));
	}
	gid.bytes[6] = 1;
	EXPECT_FALSE(groups.attach(gid, 1));
	EXPECT_FALSE(groups.detach(gid, 1));
}

class Multicast : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		qp_ = make_ud();
		other_ = make_ud();
	}
	std::unique_ptr<HostQp> make_ud(bool no_mc_loopback = false)
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = TERN_QPT_UD;
		options.no_mc_loopback = no_mc_loopback;
		auto qp = driver_.create_qp(options);
		qp->start(kQkey);
		for (int i = 0; i < 4; i++)
			qp->post_recv(mr_->sge(0x10000, 256));
		return qp;
	}
	tern_hw_aq_status command(tern_hw_aq_op opcode, uint32_t qpn, const Gid &mgid = kGroup4)
	{
		auto c = make_command(opcode);
		c.mcast.qpn = qpn;
		std::ranges::copy(mgid.bytes, c.mcast.mgid);
		return driver_.status_of(c);
	}
	tern_hw_aq_status attach(uint32_t qpn, const Gid &mgid = kGroup4)
	{
		return command(TERN_AQ_ATTACH_MCAST, qpn, mgid);
	}
	static AddressVector group_path()
	{
		AddressVector av = path();
		av.dmac = kGroupMac4;
		av.dgid = kGroup4;
		return av;
	}
	void give_datagram(uint32_t qkey = kQkey)
	{
		TestPacket p{.opcode = Opcode::RcSendOnly,
		             .service = Service::Ud,
		             .qpn = kMulticastQpn,
		             .payload = std::vector<std::byte>(20)};
		p.ext.deth = {qkey, kPeerQpn};
		give(p, group_path());
	}
	SendRequest to_group()
	{
		tern_hw_ud_seg to{};
		std::ranges::copy(kGroup4.bytes, to.dgid);
		std::ranges::copy(kGroupMac4, to.dmac);
		to.hop_limit = 1;
		to.dest_qpn = kMulticastQpn;
		to.qkey = kQkey;
		to.udp_sport = 0xc000;
		SendRequest request;
		request.flags = 0;
		request.sges = {mr_->sge(0, 30)};
		request.to = to;
		return request;
	}

	std::unique_ptr<HostQp> other_;
};

TEST_F(Multicast, ACopyForEachMember)
{
	give_datagram();
	EXPECT_EQ(stat(TERN_STAT_RX_FILTERED), 1u);
	EXPECT_EQ(attach(qp_->number), TERN_AQ_OK);
	EXPECT_EQ(attach(other_->number), TERN_AQ_OK);
	give_datagram();
	EXPECT_EQ(cq_->drain().size(), 2u);
	EXPECT_EQ(stat(TERN_STAT_MCAST_RX_PACKETS), 2u);

	EXPECT_EQ(command(TERN_AQ_DETACH_MCAST, other_->number), TERN_AQ_OK);
	give_datagram();
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 1u);
	EXPECT_EQ(cqes[0].qpn.get(), qp_->number);
	EXPECT_EQ(cqes[0].src_qpn.get(), kPeerQpn);
}

TEST_F(Multicast, WrongKeyAndWrongAddress)
{
	EXPECT_EQ(attach(qp_->number), TERN_AQ_OK);
	give_datagram(kQkey + 1);
	EXPECT_EQ(stat(TERN_STAT_RX_BAD_QKEY), 1u);
	EXPECT_EQ(stat(TERN_STAT_MCAST_RX_PACKETS), 0u);
	/* The QPN of multicasts with an address that is none, and the other way round. */
	TestPacket p{.opcode = Opcode::RcSendOnly, .service = Service::Ud, .qpn = kMulticastQpn};
	p.ext.deth = {kQkey, kPeerQpn};
	give(p, path());
	p.qpn = qp_->number;
	give(p, group_path());
	EXPECT_EQ(stat(TERN_STAT_RX_NO_QP), 2u);
	EXPECT_TRUE(cq_->drain().empty());
}

TEST_F(Multicast, OwnOnesComeBack)
{
	EXPECT_EQ(attach(qp_->number), TERN_AQ_OK);
	EXPECT_EQ(attach(other_->number), TERN_AQ_OK);
	qp_->post_send(to_group());
	run();
	EXPECT_EQ(host_.wire.frames().size(), 1u);
	EXPECT_EQ(cq_->drain().size(), 2u);

	const auto silent = make_ud(true);
	silent->post_send(to_group());
	run();
	EXPECT_EQ(host_.wire.frames().size(), 2u);
	EXPECT_TRUE(cq_->drain().empty());
}

TEST_F(Multicast, QpGoesAway)
{
	EXPECT_EQ(attach(other_->number), TERN_AQ_OK);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, other_->number), TERN_AQ_OK);
	give_datagram();
	EXPECT_EQ(stat(TERN_STAT_RX_FILTERED), 1u);
}

TEST_F(Multicast, BadCommands)
{
	EXPECT_EQ(attach(qp_->number, kPeerGid), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(attach(0xabcde), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(attach(make_qp()->number), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(command(TERN_AQ_DETACH_MCAST, qp_->number), TERN_AQ_BAD_OBJECT);
	auto c = make_command(TERN_AQ_ATTACH_MCAST);
	c.mcast.qpn = qp_->number;
	c.mcast.rsvd = 1;
	std::ranges::copy(kGroup6.bytes, c.mcast.mgid);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
}

/* A group has datagrams only. */
TEST_F(Multicast, PacketsOfConnections)
{
	EXPECT_EQ(attach(qp_->number), TERN_AQ_OK);
	give({.opcode = Opcode::RcSendOnly, .service = Service::Uc, .qpn = kMulticastQpn},
	     group_path());
	EXPECT_EQ(stat(TERN_STAT_RX_NO_QP), 1u);
	EXPECT_TRUE(cq_->drain().empty());
}

} // namespace
} // namespace tern::test
