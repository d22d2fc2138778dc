// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/fabric/frames.h"

namespace tern::fabric {
namespace {

using test::Bytes;
using test::mac;
using test::Net;
using test::plain_frame;
using test::roce_frame;
using test::Sink;

/** Leaves 0 and 1, spines 2 and 3; hosts 1 and 2 at leaf 0, 3 and 4 at leaf 1. */
struct LeafSpine : Net {
	LeafSpine() : Net(4)
	{
		for (int i = 0; i < 4; i++)
			fabric.add_switch({});
		for (unsigned host = 1; host <= 4; host++)
			plug(host, (host - 1) / 2);
		for (const unsigned leaf : {0, 1})
			for (const unsigned spine : {2, 3})
				trunks.push_back(trunk(leaf, spine));
		fabric.update_routes();
	}
	/** Frames from host 1 to host 3, each of a flow of its own. */
	void send_flows(unsigned count)
	{
		for (unsigned i = 0; i < count; i++)
			send(1, roce_frame({.from = 1,
			                    .to = 3,
			                    .udp_sport = static_cast<uint16_t>(0xc000 + i)}));
	}
	/** Frames that @spine has received. */
	uint64_t through(unsigned spine)
	{
		uint64_t sum = 0;
		for (unsigned i = 0; i < fabric.at(spine).ports(); i++)
			sum += fabric.at(spine).port(i).stats().rx_frames;
		return sum;
	}

	std::vector<unsigned> trunks; /* leaf 0 to 2, 0 to 3, 1 to 2, 1 to 3 */
};

/* Only the addresses of those that invent them are forgotten. */
TEST(Topology, AHostHas256Addresses)
{
	LeafSpine net;
	Sink sink(net.loop);
	const unsigned first = net.fabric.add_host(sink), second = net.fabric.add_host(sink);
	net.plug(first + 1, 0);
	net.plug(second + 1, 1);
	net.fabric.learn(first, 5);
	for (uint64_t i = 0; i < 5000; i++)
		net.fabric.learn(second, 1000 + i);
	EXPECT_TRUE(net.fabric.is_at(first, 5));
	EXPECT_TRUE(net.fabric.is_at(second, 5999));
	EXPECT_TRUE(net.fabric.is_at(second, 5744));
	EXPECT_FALSE(net.fabric.is_at(second, 5743));
}

TEST(Topology, AnAddressMayMoveAsOftenAsItLikes)
{
	LeafSpine net;
	Sink sink(net.loop);
	const unsigned first = net.fabric.add_host(sink), second = net.fabric.add_host(sink);
	net.plug(first + 1, 0);
	net.plug(second + 1, 1);
	for (int i = 0; i < 300; i++) {
		net.fabric.learn(first, 5);
		net.fabric.learn(second, 5);
	}
	EXPECT_TRUE(net.fabric.is_at(second, 5));
	for (uint64_t i = 0; i < 255; i++)
		net.fabric.learn(second, 1000 + i);
	EXPECT_TRUE(net.fabric.is_at(second, 5)) << "it counts once";
	net.fabric.learn(second, 2000);
	EXPECT_FALSE(net.fabric.is_at(second, 5));
}

TEST(Topology, FlowsSpreadOverEqualPaths)
{
	LeafSpine net;
	net.send_flows(200);
	net.run();
	EXPECT_EQ(net.received(3), 200u);
	EXPECT_NEAR(static_cast<double>(net.through(2)), 100, 30);
	EXPECT_EQ(net.through(2) + net.through(3), 200u);
}

/* A switch distributes the flows that the switch before it sends to one port over all its ports.
 * This must hold for 2, 3 and 4 next hops, and for several differences of the switch numbers. */
TEST(Topology, FlowsSpreadAgainAtTheNextSwitch)
{
	for (const unsigned unused : {0, 1, 2, 3, 6}) {
		for (const unsigned width : {2, 3, 4}) {
			Net net(2);
			const unsigned leaf = net.fabric.add_switch({});
			for (unsigned i = 0; i < unused; i++)
				net.fabric.add_switch({});
			const unsigned middle = net.fabric.add_switch({});
			const unsigned other = net.fabric.add_switch({});
			const unsigned last = net.fabric.add_switch({});
			std::vector<unsigned> cores;
			for (unsigned i = 0; i < width; i++)
				cores.push_back(net.fabric.add_switch({}));
			net.plug(1, leaf);
			net.plug(2, last);
			for (const unsigned first : {middle, other}) {
				net.trunk(leaf, first);
				for (const unsigned core : cores)
					net.trunk(first, core);
			}
			for (const unsigned core : cores)
				net.trunk(core, last);
			net.fabric.update_routes();
			for (unsigned i = 0; i < 600; i++)
				net.send(1, roce_frame({.from = 1,
				                        .to = 2,
				                        .udp_sport = static_cast<uint16_t>(0xc000 +
				                                                           i)}));
			net.run();
			EXPECT_EQ(net.received(2), 600u);
			Switch &from = net.fabric.at(middle);
			for (unsigned port = 1; port <= width; port++)
				EXPECT_NEAR(static_cast<double>(from.port(port).stats().tx_frames),
				            300.0 / width, 100.0 / width)
				        << unused << " " << width;
		}
	}
}

TEST(Topology, AFlowKeepsItsPath)
{
	LeafSpine net;
	for (int i = 0; i < 50; i++)
		net.send(1, roce_frame({.from = 1, .to = 3}));
	net.run();
	EXPECT_EQ(net.received(3), 50u);
	EXPECT_TRUE(net.through(2) == 0 || net.through(3) == 0);
}

TEST(Topology, NeighboursDoNotPassASpine)
{
	LeafSpine net;
	net.send(1, roce_frame({.from = 1, .to = 2}));
	net.run();
	EXPECT_EQ(net.received(2), 1u);
	EXPECT_EQ(net.through(2) + net.through(3), 0u);
}

TEST(Topology, ABroadcastReachesEveryHostOnce)
{
	LeafSpine net;
	net.send(1, plain_frame(test::kBroadcast, mac(1)));
	net.run();
	EXPECT_EQ(net.received(1), 0u);
	for (const unsigned host : {2, 3, 4})
		EXPECT_EQ(net.received(host), 1u) << host;
}

/* A frame of host 1 to a group. */
Bytes group_frame(const Mac &group, bool ipv6)
{
	Bytes frame = roce_frame({.from = 1, .ipv6 = ipv6});
	std::ranges::copy(std::as_bytes(std::span(group)), frame.begin());
	return frame;
}

TEST(Topology, AGroupReachesEveryHostOnce)
{
	LeafSpine net;
	const Bytes frames[] = {group_frame({0x01, 0x00, 0x5e, 1, 2, 3}, false),
	                        group_frame({0x33, 0x33, 0, 0, 0, 1}, true)};
	const auto expect_once = [&](const std::string &when) {
		for (const Bytes &frame : frames) {
			for (unsigned host = 1; host <= 4; host++)
				net.host(host).frames.clear();
			net.send(1, frame);
			net.run();
			EXPECT_EQ(net.received(1), 0u) << when;
			for (const unsigned host : {2, 3, 4}) {
				ASSERT_EQ(net.received(host), 1u) << when << ", host " << host;
				EXPECT_EQ(net.host(host).frames[0], frame);
			}
		}
	};
	expect_once("all links are up");
	for (const unsigned trunk : net.trunks) {
		net.fabric.set_link(trunk, false);
		expect_once("link " + std::to_string(trunk) + " is cut");
		net.fabric.set_link(trunk, true);
	}
	expect_once("all links are up again");
}

/* A switch drops frames of LACP, and pause frames that its port does not obey. */
TEST(Topology, FramesForTheLinkStayThere)
{
	LeafSpine net;
	const auto group = [](uint8_t last) { return Mac{0x01, 0x80, 0xc2, 0, 0, last}; };
	for (const uint8_t last : {0x01, 0x02, 0x0f})
		net.send(1, plain_frame(group(last), mac(1)));
	net.run();
	for (const unsigned host : {2, 3, 4})
		EXPECT_EQ(net.received(host), 0u) << host;
	EXPECT_EQ(net.fabric.at(0).stats().filtered, 3u);

	for (const uint8_t last : {0x00, 0x10})
		net.send(1, plain_frame(group(last), mac(1)));
	net.run();
	EXPECT_EQ(net.received(2), 2u);
}

TEST(Topology, LearnsAcrossSwitches)
{
	LeafSpine net;
	net.send(3, plain_frame(test::kBroadcast, mac(77)));
	net.run();
	net.send(1, plain_frame(mac(77), mac(1)));
	net.run();
	EXPECT_EQ(net.received(3), 1u);
	EXPECT_EQ(net.received(2), 1u);
	EXPECT_EQ(net.received(4), 1u);
}

TEST(Topology, NoFrameGoesBackWhenItsDestinationMoves)
{
	LeafSpine net;
	net.send_flows(1);
	net.loop.run_for(3000); /* leaf 0 has sent it to a spine */
	const Mac moved = mac(3);
	net.fabric.learn(1, mac_at(std::as_bytes(std::span(moved)), 0));
	net.run();
	EXPECT_EQ(net.received(2) + net.received(3), 0u);
	EXPECT_EQ(net.fabric.at(2).stats().filtered + net.fabric.at(3).stats().filtered, 1u);
	net.send_flows(1);
	net.run();
	EXPECT_EQ(net.received(2), 1u);
}

TEST(Topology, RoutesAvoidACutLink)
{
	LeafSpine net;
	net.fabric.set_link(net.trunks[0], false);
	net.send_flows(50);
	net.send(1, plain_frame(test::kBroadcast, mac(1)));
	net.run();
	EXPECT_EQ(net.received(3), 51u);
	EXPECT_EQ(net.received(4), 1u);
	EXPECT_EQ(net.through(2), 1u) << "the broadcast alone";
	net.fabric.set_link(net.trunks[0], true);
	net.send_flows(50);
	net.run();
	EXPECT_GT(net.through(2), 1u);
}

TEST(Topology, UnreachableSwitchesAreCounted)
{
	LeafSpine net;
	for (const unsigned trunk : net.trunks)
		net.fabric.set_link(trunk, false);
	net.send_flows(3);
	net.run();
	EXPECT_EQ(net.received(3), 0u);
	EXPECT_EQ(net.fabric.at(0).stats().unreachable, 3u);
	EXPECT_EQ(net.fabric.pool().used(), 0u);
}

TEST(Topology, TwoHostsWithoutASwitch)
{
	Net net(2);
	using Kind = Fabric::End::Kind;
	net.fabric.connect({Kind::Host, 0}, {Kind::Host, 1}, Net::kLink);
	net.fabric.update_routes();
	net.send(1, roce_frame({}));
	net.run();
	EXPECT_EQ(net.received(2), 1u);
}

/* Each link: sent by one end is received by the other or lost. */
TEST(Topology, NothingGetsLostUncounted)
{
	LeafSpine net;
	net.send_flows(100);
	net.loop.run_for(20'000);
	net.fabric.set_link(net.trunks[1], false);
	net.send_flows(100);
	net.run();
	uint64_t lost = 0;
	for (unsigned i = 0; i < net.fabric.links(); i++) {
		const auto [a, b] = net.fabric.ends(i);
		lost += a->stats().lost + b->stats().lost;
	}
	EXPECT_GT(lost, 0u);
	EXPECT_EQ(net.received(3) + lost, 200u);
}

} // namespace
} // namespace tern::fabric
