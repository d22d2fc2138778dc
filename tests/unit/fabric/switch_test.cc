// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/switch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "tests/unit/fabric/frames.h"

namespace tern::fabric {
namespace {

using test::Bytes;
using test::mac;
using test::Net;
using test::plain_frame;
using test::roce_frame;

/** @hosts around one switch. */
struct Star : Net {
	explicit Star(unsigned count, const SwitchConfig &config = {},
	              const LinkConfig &link = kLink)
	        : Net(count)
	{
		fabric.add_switch(config);
		for (unsigned i = 1; i <= count; i++)
			plug(i, 0, link);
		fabric.update_routes();
	}
	Switch &the_switch() { return fabric.at(0); }
	/** The port to host @i. */
	Port &port_to(unsigned i) { return the_switch().port(i - 1); }
};

TEST(Switch, StoresAndForwards)
{
	Star net(3);
	const Bytes frame = roce_frame({.from = 1, .to = 2, .payload = 256});
	net.send(1, frame);
	net.run();
	const uint64_t hop = frame.size() + Port::kFrameOverhead + 1000;
	EXPECT_EQ(net.host(2).times, (std::vector{2 * hop}));
	EXPECT_EQ(net.host(2).frames, (std::vector<Bytes>{frame}));
	EXPECT_EQ(net.received(3), 0u);
	EXPECT_EQ(net.fabric.pool().used(), 0u);
}

TEST(Switch, FloodsWhatIsForAllAndWhatIsUnknown)
{
	Star net(3);
	net.send(1, plain_frame(test::kBroadcast, mac(1)));
	net.send(1, plain_frame(mac(77), mac(1)));
	net.run();
	EXPECT_EQ(net.received(1), 0u);
	EXPECT_EQ(net.received(2), 2u);
	EXPECT_EQ(net.received(3), 2u);
	EXPECT_EQ(net.the_switch().stats().flooded, 2u);
}

TEST(Switch, LearnsWhereAnAddressIs)
{
	Star net(3);
	net.send(2, plain_frame(mac(1), mac(77)));
	net.run();
	net.send(1, plain_frame(mac(77), mac(1)));
	net.run();
	EXPECT_EQ(net.received(2), 1u);
	EXPECT_EQ(net.received(3), 0u);
	/* It is behind that very link: the switch has nothing to do. */
	net.send(2, plain_frame(mac(77), mac(2)));
	net.run();
	EXPECT_EQ(net.received(2), 1u);
	EXPECT_EQ(net.the_switch().stats().filtered, 1u);
}

TEST(Switch, WhoInventsAddressesForgetsItsOwnOldest)
{
	Star net(3);
	net.send(2, plain_frame(mac(1), mac(77)));
	for (unsigned i = 0; i < 5000; i++) {
		Mac from = mac(0);
		from[3] = static_cast<uint8_t>(i >> 8);
		from[4] = static_cast<uint8_t>(i);
		net.send(3, plain_frame(mac(1), from));
	}
	net.run();
	net.send(1, plain_frame(mac(77), mac(1)));
	net.run();
	EXPECT_EQ(net.received(2), 1u);
	EXPECT_EQ(net.received(3), 0u) << "where 77 is is still known";
}

TEST(Switch, AnAddressMayMoveAsOftenAsItLikes)
{
	Star net(4);
	for (int i = 0; i < 300; i++) {
		for (const unsigned at : {3, 2}) {
			net.send(at, plain_frame(mac(1), mac(77)));
			net.run();
		}
	}
	net.send(1, plain_frame(mac(77), mac(1)));
	net.run();
	EXPECT_EQ(net.received(2), 1u);
	EXPECT_EQ(net.received(3), 0u);
	EXPECT_EQ(net.received(4), 0u) << "where 77 is is known";
	EXPECT_EQ(net.the_switch().stats().flooded, 0u);
}

TEST(Switch, NobodyTakesTheAddressOfAHost)
{
	Star net(3);
	net.send(3, plain_frame(mac(1), mac(2)));
	net.run();
	net.send(1, plain_frame(mac(2), mac(1)));
	net.run();
	EXPECT_EQ(net.received(2), 1u);
	EXPECT_EQ(net.received(3), 0u);
}

/** Hosts 2, 3, ... send @frames each to host 1, all at once. */
void incast(Star &net, unsigned senders, unsigned frames, const test::FrameSpec &like)
{
	test::FrameSpec spec = like;
	spec.to = 1;
	for (unsigned i = 0; i < frames; i++) {
		for (unsigned from = 2; from < 2 + senders; from++) {
			spec.from = static_cast<uint8_t>(from);
			net.send(from, roce_frame(spec));
		}
	}
	net.run();
}

TEST(Switch, DropsAtTheTail)
{
	Star net(5, {.queue_limit = 10'000});
	incast(net, 4, 20, {});
	const auto &stats = net.port_to(1).queues.stats(0);
	EXPECT_GT(stats.dropped, 0u);
	EXPECT_EQ(net.received(1) + stats.dropped, 80u);
	EXPECT_LE(stats.max_bytes, 10'000u);
	EXPECT_EQ(net.fabric.pool().used(), 0u);
}

TEST(Switch, OneFullQueueDoesNotDropFromAnother)
{
	Star net(6, {.queue_limit = 10'000});
	net.send(6, roce_frame({.from = 6, .to = 1, .traffic_class = 48 << 2}));
	incast(net, 4, 20, {});
	EXPECT_EQ(net.port_to(1).queues.stats(6).dropped, 0u);
	EXPECT_GT(net.port_to(1).queues.stats(0).dropped, 0u);
}

TEST(Switch, MarksAboveKmax)
{
	Star net(5, {.red = {.kmin = 3000, .kmax = 3000}});
	incast(net, 4, 20, {.traffic_class = 2});
	const auto &stats = net.port_to(1).queues.stats(0);
	unsigned marked = 0;
	for (const Bytes &frame : net.host(1).frames)
		marked += (std::get<Packet>(parse(frame)).path.traffic_class & 3) == 3;
	EXPECT_GT(marked, 0u);
	EXPECT_LT(marked, 80u);
	EXPECT_EQ(stats.marked, marked);
}

TEST(Switch, MarksByTheQueueThatAFrameLeavesBehind)
{
	Star net(5, {.red = {.kmin = 0, .kmax = 1}});
	incast(net, 4, 20, {.traffic_class = 2});
	const std::vector<Bytes> &frames = net.host(1).frames;
	const auto is_marked = [](const Bytes &frame) {
		return (std::get<Packet>(parse(frame)).path.traffic_class & 3) == 3;
	};
	ASSERT_EQ(frames.size(), 80u);
	EXPECT_TRUE(is_marked(frames[frames.size() - 2]));
	EXPECT_FALSE(is_marked(frames.back())) << "marked by a queue that it has waited in";
}

TEST(Switch, MarksOnlyWhoUnderstandsIt)
{
	Star net(5, {.red = {.kmin = 0, .kmax = 1}});
	incast(net, 4, 20, {});
	EXPECT_EQ(net.port_to(1).queues.stats(0).marked, 0u);
}

constexpr PfcConfig kPfc{.lossless = 1 << 3, .xoff = 8000, .xon = 4000, .headroom = 40'000};

TEST(Switch, PausesInsteadOfDropping)
{
	Star net(5, {.queue_limit = 10'000, .pfc = kPfc});
	incast(net, 4, 100, {.traffic_class = 26 << 2});
	EXPECT_EQ(net.received(1), 400u);
	EXPECT_EQ(net.the_switch().stats().pfc_dropped, 0u);
	for (unsigned i = 2; i <= 5; i++) {
		EXPECT_GT(net.port_to(i).stats().pauses_sent[3], 0u);
		EXPECT_EQ(net.port_to(i).stats().pauses_sent,
		          net.fabric.host_port(i - 1).stats().pauses_received);
		EXPECT_EQ(net.the_switch().ingress(i - 1).held(3), 0u);
	}
}

TEST(Switch, OtherPrioritiesAreNotPaused)
{
	Star net(6, {.pfc = kPfc});
	for (int i = 0; i < 50; i++)
		net.send(2, roce_frame({.from = 2, .to = 6}));
	incast(net, 4, 100, {.traffic_class = 26 << 2});
	EXPECT_EQ(net.received(6), 50u);
	EXPECT_EQ(net.port_to(2).stats().pauses_sent[0], 0u);
	/* Ahead of what it had queued before and was paused. */
	EXPECT_LT(net.host(6).times.back(), net.host(1).times.back());
}

/* The link is so long that pause frames arrive too late, and the sender exceeds the headroom. */
TEST(Switch, DropsBeyondTheHeadroom)
{
	PfcConfig pfc = kPfc;
	pfc.headroom = 4000;
	Star net(3, {.pfc = pfc}, {.rate = 8'000'000'000, .delay = 50'000});
	incast(net, 2, 200, {.traffic_class = 26 << 2});
	const uint64_t dropped = net.the_switch().stats().pfc_dropped;
	EXPECT_GT(dropped, 0u);
	EXPECT_EQ(net.received(1) + dropped, 400u);
}

TEST(Switch, TheComputedHeadroomSuffices)
{
	for (const uint64_t jitter : {0, 200'000}) {
		const LinkConfig link{.rate = 8'000'000'000, .delay = 50'000, .jitter = jitter};
		PfcConfig pfc = kPfc;
		pfc.headroom = headroom_for(link);
		Star net(3, {.pfc = pfc}, link);
		incast(net, 2, 400, {.traffic_class = 26 << 2});
		EXPECT_EQ(net.received(1), 800u) << jitter;
		EXPECT_GT(net.port_to(2).stats().pauses_sent[3], 0u) << jitter;
	}
}

/* The way out is paused itself for longer than one pause lasts: 65535 quanta are 4.2 ms. */
TEST(Switch, RepeatsAPauseThatIsStillNeeded)
{
	Star net(3, {.pfc = kPfc});
	net.fabric.host_port(0).pause_peer(3, kMaxQuanta);
	net.loop.run_for(3'000'000);
	net.fabric.host_port(0).pause_peer(3, kMaxQuanta);
	incast(net, 1, 100, {.traffic_class = 26 << 2});
	EXPECT_EQ(net.received(1), 100u);
	EXPECT_EQ(net.the_switch().stats().pfc_dropped, 0u);
	EXPECT_GE(net.port_to(2).stats().pauses_sent[3], 2u);
}

/* A frame that a sender has sent once is held once against it, however many copies wait. */
TEST(Switch, CountsAFloodedFrameOnce)
{
	constexpr unsigned kHosts = 40;
	const PfcConfig pfc{.lossless = 1 << 3, .headroom = headroom_for(Net::kLink)};
	Star net(kHosts, {.pfc = pfc});
	Bytes frame = roce_frame({.from = 1, .traffic_class = 26 << 2, .payload = 4096});
	std::ranges::fill(std::span(frame).first(6), std::byte{0xff});
	const Ingress &ingress = net.the_switch().ingress(0);
	net.send(1, frame);
	uint64_t most = 0;
	while (net.loop.step())
		most = std::max(most, ingress.held(3));
	EXPECT_EQ(most, frame.size());
	EXPECT_EQ(ingress.held(3), 0u);
	EXPECT_EQ(net.the_switch().stats().pfc_dropped, 0u);
	EXPECT_EQ(net.port_to(1).stats().pauses_sent[3], 0u);
	for (unsigned i = 2; i <= kHosts; i++)
		EXPECT_EQ(net.received(i), 1u) << i;
}

/* The copies leave at different times: one is sent at once, one is lost at once because its link is
 * down, one waits for the end of a pause, and one is lost when its link fails. */
TEST(Switch, HoldsAFloodedFrameUntilItsLastCopyHasLeft)
{
	Star net(5, {.pfc = kPfc});
	Bytes frame = roce_frame({.from = 1, .traffic_class = 26 << 2});
	std::ranges::fill(std::span(frame).first(6), std::byte{0xff});
	const Ingress &ingress = net.the_switch().ingress(0);
	for (const unsigned paused : {2, 4})
		net.fabric.host_port(paused - 1).pause_peer(3, kMaxQuanta);
	net.loop.run_for(10'000);
	net.port_to(5).set_up(false);
	net.send(1, frame);
	net.loop.run_for(100'000);
	EXPECT_EQ(net.received(3), 1u);
	EXPECT_EQ(ingress.held(3), frame.size());
	net.fabric.host_port(1).pause_peer(3, 0);
	net.loop.run_for(100'000);
	EXPECT_EQ(net.received(2), 1u);
	EXPECT_EQ(ingress.held(3), frame.size());
	net.port_to(4).set_up(false);
	EXPECT_EQ(ingress.held(3), 0u);
	net.run();
	EXPECT_EQ(net.received(4), 0u);
	EXPECT_EQ(net.fabric.pool().used(), 0u);
}

/* All copies are lost at once. */
TEST(Switch, HoldsNothingOfAFloodedFrameThatNoPortTakes)
{
	Star net(3, {.pfc = kPfc});
	Bytes frame = roce_frame({.from = 1, .traffic_class = 26 << 2});
	std::ranges::fill(std::span(frame).first(6), std::byte{0xff});
	for (const unsigned down : {2, 3})
		net.port_to(down).set_up(false);
	net.send(1, frame);
	net.run();
	EXPECT_EQ(net.the_switch().ingress(0).held(3), 0u);
}

/* Two switches. Host 1 and 2 are at the first, 3 and 4 at the second; host 3 pauses its link for
 * ever. What is for it fills the second switch, which then pauses the trunk. */
struct StormNet : Net {
	explicit StormNet(uint64_t watchdog) : Net(4)
	{
		PfcConfig pfc = kPfc;
		pfc.watchdog = watchdog;
		for (int i = 0; i < 2; i++)
			fabric.add_switch({.pfc = pfc});
		for (unsigned host = 1; host <= 4; host++)
			plug(host, (host - 1) / 2);
		trunk_link = trunk(0, 1);
		fabric.update_routes();
	}
	void storm(uint64_t milliseconds)
	{
		for (uint64_t i = 0; i < milliseconds; i++) {
			fabric.host_port(2).pause_peer(3, kMaxQuanta);
			loop.run_for(1'000'000);
		}
	}
	Port &to_stormer() { return fabric.at(1).port(0); }

	unsigned trunk_link = 0;
};

TEST(Switch, APauseStormBlocksOnlyWhatIsForItsHost)
{
	for (const uint64_t watchdog : {0, 20'000'000}) {
		StormNet net(watchdog);
		net.storm(1);
		for (int i = 0; i < 100; i++)
			net.send(1, roce_frame({.from = 1, .to = 3, .traffic_class = 26 << 2}));
		net.storm(10);
		for (int i = 0; i < 100; i++)
			net.send(2, roce_frame({.from = 2, .to = 4, .traffic_class = 26 << 2}));
		net.storm(40);
		EXPECT_EQ(net.received(4), watchdog ? 100u : 0u);
		EXPECT_EQ(net.received(3), 0u);
		EXPECT_EQ(net.to_stormer().stats().pause_storms, watchdog ? 1u : 0u);
		EXPECT_EQ(net.to_stormer().stats().storm_dropped, watchdog ? 100u : 0u);
		EXPECT_EQ(net.fabric.ends(net.trunk_link).a->stats().pause_storms, 0u)
		        << "it waits for the other switch, which is no storm";
		EXPECT_EQ(net.fabric.at(1).ingress(2).held(3) == 0, watchdog != 0);
	}
}

/* The receiver's link has a hundredth of the others' rate, so its switch pauses the trunk for most
 * of half a second. It never holds more than it sends in 5 ms, so there are gaps. */
TEST(Switch, ALongIncastIsNoStorm)
{
	PfcConfig pfc = kPfc;
	pfc.watchdog = 20'000'000;
	Net net(6);
	for (int i = 0; i < 2; i++)
		net.fabric.add_switch({.pfc = pfc});
	net.plug(1, 1, {.rate = 80'000'000, .delay = 1000});
	for (unsigned host = 2; host <= 6; host++)
		net.plug(host, 0);
	const unsigned trunk = net.trunk(0, 1);
	net.fabric.update_routes();
	for (int i = 0; i < 1000; i++) {
		for (uint8_t from = 2; from <= 6; from++)
			net.send(from,
			         roce_frame({.from = from, .to = 1, .traffic_class = 26 << 2}));
	}
	net.run();
	EXPECT_EQ(net.received(1), 5000u);
	EXPECT_GT(net.loop.now(), 500'000'000u);
	EXPECT_GT(net.fabric.ends(trunk).a->stats().pauses_received[3], 100u);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned port = 0; port < net.fabric.at(i).ports(); port++)
			EXPECT_EQ(net.fabric.at(i).port(port).stats().pause_storms, 0u);
	}
}

/* The ends of a link that returns have forgotten all pauses. The switch that still holds too much
 * pauses its peer at once, and not when the last pause would have had to be repeated: that is after
 * 2.1 ms, in which a trunk carries 2.1 MB. */
TEST(Switch, ALinkThatReturnsIsPausedAgain)
{
	Net net(3);
	for (int i = 0; i < 2; i++)
		net.fabric.add_switch({.pfc = kPfc});
	net.plug(1, 1, {.rate = 80'000'000, .delay = 1000});
	net.plug(2, 0);
	net.plug(3, 0);
	const unsigned trunk = net.trunk(0, 1);
	net.fabric.update_routes();
	const auto send = [&](unsigned frames) {
		for (unsigned i = 0; i < frames; i++) {
			for (const uint8_t from : {2, 3})
				net.send(from, roce_frame({.from = from,
				                           .to = 1,
				                           .traffic_class = 26 << 2}));
		}
	};
	const Ingress &ingress = net.fabric.at(1).ingress(1);
	send(100);
	net.loop.run_for(100'000);
	ASSERT_GT(ingress.held(3), kPfc.xon);
	const uint64_t pauses = net.fabric.ends(trunk).b->stats().pauses_sent[3];
	ASSERT_GT(pauses, 0u);
	net.fabric.set_link(trunk, false);
	net.fabric.set_link(trunk, true);
	EXPECT_EQ(net.fabric.ends(trunk).b->stats().pauses_sent[3], pauses + 1);
	send(300);
	net.run();
	EXPECT_EQ(net.fabric.at(1).stats().pfc_dropped, 0u);
	EXPECT_EQ(ingress.held(3), 0u);
}

/* What is lost with a link gives its room in the buffer back. */
TEST(Switch, ACutLinkReleasesTheBuffer)
{
	Star net(3, {.pfc = kPfc});
	for (int i = 0; i < 100; i++)
		net.send(2, roce_frame({.from = 2, .to = 1, .traffic_class = 26 << 2}));
	for (int i = 0; i < 100; i++)
		net.send(3, roce_frame({.from = 3, .to = 1, .traffic_class = 26 << 2}));
	net.loop.run_for(20'000);
	EXPECT_GT(net.the_switch().ingress(1).held(3), 0u);
	net.fabric.set_link(0, false);
	net.run();
	EXPECT_EQ(net.the_switch().ingress(1).held(3), 0u);
	EXPECT_EQ(net.received(1) + net.port_to(1).stats().lost, 200u);
}

} // namespace
} // namespace tern::fabric
