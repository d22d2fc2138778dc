// SPDX-License-Identifier: GPL-2.0-or-later
/* Cards of several engines, each of which is a lane of the wire. */
#include "tests/unit/shm/shared_wire_fixture.h"

namespace tern::shm {
namespace {

/* Node 0 is a host, 1 and 2 are lanes of a card, 3 and 4 of another; the addresses are 1, 2, 3. */
class SharedLanesTest : public SharedWireTest {
protected:
	SharedLanesTest()
	{
		connect_lane(0, 0);
		for (const uint64_t card : {77, 88}) {
			connect_lane(card, 0);
			connect_lane(card, 1);
		}
		announce_addresses();
	}

	void announce_addresses()
	{
		for (const unsigned i : {0, 1, 3})
			nodes[i].wire.send(frame(kBroadcast, address(i)));
		settle();
		clear();
	}
	void clear()
	{
		for (Node &node : nodes) {
			node.frames.clear();
			node.loans.clear();
		}
	}
	static uint8_t address(unsigned node)
	{
		return std::array<uint8_t, 5>{1, 2, 2, 3, 3}[node];
	}
	Wire::Lend lend(unsigned from, uint8_t to, uint32_t qpn)
	{
		const RamRange range{0, 10, 0};
		return nodes[from].wire.lend(roce(to, address(from), qpn), std::span(&range, 1), 0,
		                             {});
	}
	using Counts = std::vector<size_t>;
	Counts loans()
	{
		Counts counts;
		for (const Node &node : nodes)
			counts.push_back(node.loans.size());
		return counts;
	}
	Counts frames()
	{
		Counts counts;
		for (const Node &node : nodes)
			counts.push_back(node.frames.size());
		return counts;
	}
};

TEST_F(SharedLanesTest, PacketsGoDirectlyToTheEngineOfTheirQp)
{
	const uint64_t before = frames_through_switch();
	EXPECT_EQ(lend(0, 2, qp_of(1)), Wire::Lend::Done);
	EXPECT_TRUE(nodes[0].wire.send(roce(2, 1, qp_of(1), 7)));
	EXPECT_EQ(lend(2, 3, qp_of(1)), Wire::Lend::Done);
	EXPECT_EQ(lend(2, 1, qp_of(1)), Wire::Lend::Done) << "one with a single lane";
	settle();
	EXPECT_EQ(loans(), (Counts{1, 0, 1, 0, 1}));
	EXPECT_EQ(frames(), (Counts{0, 0, 1, 0, 0}));
	EXPECT_EQ(nodes[2].tags(), Tags{7});
	clear();
	for (const uint32_t qpn : {qp_of(0), 1u, qp_of(2), qp_of(15)}) /* 1 is the GSI */
		EXPECT_EQ(lend(0, 2, qpn), Wire::Lend::Done);
	EXPECT_TRUE(nodes[4].wire.send(frame(2, 3)));
	settle();
	EXPECT_EQ(loans(), (Counts{0, 4, 0, 0, 0}));
	EXPECT_EQ(frames(), (Counts{0, 1, 0, 0, 0}));
	EXPECT_EQ(frames_through_switch(), before);
}

TEST_F(SharedLanesTest, EnginesOfACardHaveADirectWay)
{
	const uint64_t before = frames_through_switch();
	EXPECT_EQ(lend(1, 2, qp_of(1)), Wire::Lend::Done);
	EXPECT_EQ(lend(2, 2, qp_of(0)), Wire::Lend::Done);
	EXPECT_EQ(lend(2, 2, qp_of(9)), Wire::Lend::Done);
	EXPECT_EQ(lend(1, 2, qp_of(0)), Wire::Lend::Refused) << "to itself";
	EXPECT_EQ(lend(2, 2, qp_of(1)), Wire::Lend::Refused);
	settle();
	EXPECT_EQ(loans(), (Counts{0, 2, 1, 0, 0}));
	EXPECT_EQ(frames_through_switch(), before);
	EXPECT_TRUE(nodes[2].wire.send(roce(2, 2, qp_of(1))));
	EXPECT_TRUE(nodes[1].wire.send(frame(2, 2)));
	settle();
	EXPECT_EQ(frames(), Counts(5)) << "filtered";
	EXPECT_EQ(frames_through_switch(), before + 2);
}

TEST_F(SharedLanesTest, AnAddressOfAnotherCardIsToBeLearned)
{
	for (const unsigned i : {0, 1, 2}) {
		EXPECT_FALSE(nodes[i].wire.can_lend(roce(1, 3, qp_of(1)))) << i;
		EXPECT_FALSE(nodes[i].wire.can_lend(roce(2, 3, qp_of(1)))) << i;
	}
	EXPECT_TRUE(nodes[4].wire.can_lend(roce(2, 3, qp_of(1))));
	nodes[2].wire.send(frame(1, 3));
	settle();
	EXPECT_TRUE(nodes[2].wire.can_lend(roce(1, 3, qp_of(1))));
	EXPECT_FALSE(nodes[4].wire.can_lend(roce(1, 3, qp_of(1))));
}

TEST_F(SharedLanesTest, GroupsGoThroughTheSwitch)
{
	nodes[1].wire.send(roce(kBroadcast, 2, 0xffffff));
	settle();
	EXPECT_EQ(frames(), (Counts{1, 0, 1, 1, 1}));
	clear();
	nodes[2].wire.send(frame(kBroadcast, 2));
	settle();
	EXPECT_EQ(frames(), (Counts{1, 0, 0, 1, 0}));
}

TEST_F(SharedLanesTest, WhatTheSwitchSeesItSeesOnce)
{
	const std::string file = path + ".pcap";
	EXPECT_EQ(server->execute("capture " + file), "ok");
	EXPECT_EQ(lend(1, 2, qp_of(1)), Wire::Lend::Refused);
	nodes[1].wire.send(roce(2, 2, qp_of(1)));
	nodes[0].wire.send(roce(2, 1, qp_of(1)));
	nodes[0].wire.send(roce(kBroadcast, 1, 0xffffff));
	settle();
	EXPECT_EQ(server->execute("capture-stop"), "ok 3 frames");
	unlink(file.c_str());
	EXPECT_EQ(frames(), (Counts{0, 1, 3, 1, 1}));
}

TEST_F(SharedLanesTest, PortsNameLanesWhereThereAreSeveral)
{
	const std::string ports = server->execute("ports");
	EXPECT_NE(ports.find("; port=0 rx="), ports.npos);
	EXPECT_NE(ports.find("; port=1 card=1 lane=0 rx="), ports.npos);
	EXPECT_NE(ports.find("; port=4 card=3 lane=1 rx="), ports.npos);
	nodes.pop_back();
	step();
	EXPECT_NE(server->execute("ports").find("; port=3 rx="), ports.npos);
}

TEST_F(SharedLanesTest, OneLeaves)
{
	nodes.pop_back();
	settle();
	EXPECT_EQ(lend(0, 3, qp_of(1)), Wire::Lend::Done);
	settle();
	EXPECT_EQ(loans(), (Counts{0, 0, 0, 1}));
}

TEST_F(SharedLanesTest, ThePrimaryLeaves)
{
	nodes.pop_front();
	nodes.pop_front(); /* so lane 1 of the first card is node 0, the other card 1 and 2 */
	settle();
	const RamRange range{0, 10, 0};
	const auto lend = [&](uint32_t qpn) {
		return nodes[1].wire.lend(roce(2, 3, qpn), std::span(&range, 1), 0, {});
	};
	EXPECT_EQ(lend(qp_of(1)), Wire::Lend::Refused);
	nodes[1].wire.send(roce(2, 3, qp_of(1)));
	settle();
	EXPECT_EQ(frames(), (Counts{1, 0, 1})) << "flooded, also to the sender's other lane";
	/* The one that is left has the address, until the other is back. */
	nodes[0].wire.send(frame(kBroadcast, 2));
	settle();
	EXPECT_EQ(lend(qp_of(0)), Wire::Lend::Done);
	settle();
	EXPECT_EQ(loans(), (Counts{1, 0, 0}));
	connect_lane(77, 0);
	settle();
	EXPECT_EQ(lend(qp_of(0)), Wire::Lend::Done);
	EXPECT_EQ(lend(qp_of(1)), Wire::Lend::Done);
	settle();
	EXPECT_EQ(loans(), (Counts{2, 0, 0, 1}));
}

TEST_F(SharedLanesTest, ComeBackToTheSwitchInAnyOrder)
{
	server.reset();
	settle_without_switch();
	start_switch();
	for (const unsigned i : {2, 4, 1, 0, 3}) {
		nodes[i].now = *nodes[i].wire.next_deadline();
		nodes[i].wire.maintain(nodes[i].now);
		settle();
		nodes[i].wire.send(frame(kBroadcast, address(i)));
		settle();
	}
	clear();
	EXPECT_EQ(lend(4, 2, qp_of(0)), Wire::Lend::Done);
	EXPECT_EQ(lend(1, 3, qp_of(1)), Wire::Lend::Done);
	EXPECT_TRUE(nodes[2].wire.send(frame(3, 2)));
	settle();
	EXPECT_EQ(loans(), (Counts{0, 1, 0, 0, 1}));
	EXPECT_EQ(frames(), (Counts{0, 0, 0, 1, 0}));
}

} // namespace
} // namespace tern::shm
