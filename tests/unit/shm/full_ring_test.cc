// SPDX-License-Identifier: GPL-2.0-or-later
/* Rings without room: who waits, for how long, and what is counted. */
#include <filesystem>

#include "tests/unit/shm/shared_wire_fixture.h"

namespace tern::shm {
namespace {

constexpr Wire::Destination kThroughSwitch = kMaxHosts;
constexpr size_t kBig = 9000;

class FullRing : public SharedWireTest {
protected:
	FullRing() { connect_hosts(3); }

	bool send(uint8_t to, uint32_t tag = 0)
	{
		return nodes[0].wire.send(frame(to, 1, tag, kBig));
	}
	/* Fills the ring to that host; returns the number of frames. */
	uint32_t fill(uint8_t to)
	{
		uint32_t sent = 0;
		while (send(to, sent))
			sent++;
		return sent;
	}
	void maintain(uint64_t now) { nodes[0].wire.maintain(now); }
	bool has_room() { return nodes[0].wire.has_room(); }
	std::optional<Wire::Destination> take_room() { return nodes[0].wire.take_room(); }
	/* Frames that hosts sent to one another, and that are not accounted for. */
	uint64_t missing()
	{
		return told("stats", "direct") - told("stats", "direct_received") -
		       told("stats", "direct_lost");
	}
};

TEST_F(FullRing, DelaysNobodyElse)
{
	fill(2);
	EXPECT_EQ(nodes[0].wire.full(), 1u);
	EXPECT_TRUE(send(3, 7));
	EXPECT_TRUE(nodes[0].wire.send(frame(kBroadcast, 1, 8)));
	EXPECT_FALSE(send(2));
	EXPECT_FALSE(has_room());
	EXPECT_EQ(take_room(), std::nullopt);
	settle_without_switch();
	EXPECT_TRUE(has_room());
	EXPECT_EQ(take_room(), 1);
	EXPECT_EQ(take_room(), std::nullopt) << "told of once";
	EXPECT_EQ(nodes[2].tags(), Tags{7});
}

TEST_F(FullRing, TwoAtOnce)
{
	fill(2);
	fill(3);
	EXPECT_EQ(nodes[0].wire.full(), 2u);
	nodes[2].receive();
	EXPECT_EQ(take_room(), 2);
	EXPECT_EQ(take_room(), std::nullopt);
	nodes[1].receive();
	EXPECT_EQ(take_room(), 1);
}

/* Another sender, which an ACK allows to go on, does not use up each place that becomes free. */
TEST_F(FullRing, NobodyGoesBeforeWhoWaits)
{
	const uint32_t sent = fill(2);
	for (uint32_t i = 0; i < sent && !has_room(); i++) {
		nodes[1].receive_some(1);
		EXPECT_FALSE(send(2));
	}
	EXPECT_EQ(take_room(), 1);
	EXPECT_TRUE(send(2));
}

/* The host rings once for the room, which therefore stays until the sender is told. */
TEST_F(FullRing, TheRoomStaysUntilItIsTold)
{
	const uint32_t sent = fill(2);
	nodes[1].receive_some(sent);
	EXPECT_FALSE(send(2));
	EXPECT_TRUE(has_room());
	EXPECT_EQ(take_room(), 1);
	for (uint32_t i = 0; i < sent; i++)
		EXPECT_TRUE(send(2));
}

TEST_F(FullRing, OfTheSwitch)
{
	EXPECT_GT(fill(9), 200u);
	EXPECT_EQ(nodes[0].wire.full(), kThroughSwitch);
	EXPECT_TRUE(send(2, 5)) << "directly";
	maintain(kSecond);
	maintain(3 * kSecond - 1);
	EXPECT_FALSE(has_room()) << "it may be waiting for a host itself";
	while (!has_room())
		settle();
	EXPECT_EQ(take_room(), kThroughSwitch);
}

TEST_F(FullRing, WhoTakesNothingLosesFrames)
{
	const uint32_t in_ring = fill(2);
	maintain(kSecond);
	EXPECT_EQ(nodes[0].wire.next_deadline(), 2 * kSecond);
	maintain(2 * kSecond - 1);
	EXPECT_FALSE(has_room());
	maintain(2 * kSecond);
	EXPECT_EQ(nodes[0].wire.next_deadline(), std::nullopt);
	EXPECT_EQ(take_room(), 1);
	for (int i = 0; i < 5; i++)
		EXPECT_TRUE(send(2)) << "lost";
	EXPECT_EQ(told("stats", "direct_lost"), 5u);
	EXPECT_EQ(missing(), in_ring);
	/* It comes back. */
	nodes[1].receive();
	nodes[1].frames.clear();
	EXPECT_TRUE(send(2, 3));
	nodes[1].receive();
	EXPECT_EQ(nodes[1].tags(), Tags{3});
	EXPECT_EQ(missing(), 0u);
}

/* A frame now and then is no progress. */
TEST_F(FullRing, WhoTakesTooLittleLosesFrames)
{
	fill(2);
	for (int i = 0; i < 5; i++) {
		maintain(kSecond + i * kSecond / 5);
		nodes[1].receive_some(1);
		send(2);
		EXPECT_EQ(take_room(), std::nullopt);
	}
	maintain(2 * kSecond);
	EXPECT_EQ(take_room(), 1);
	EXPECT_TRUE(send(2));
	nodes[1].receive_some(1);
	EXPECT_TRUE(send(2)) << "one place does not make it trusted";
	EXPECT_EQ(told("stats", "direct_lost"), 2u);
	nodes[1].receive();
	EXPECT_EQ(missing(), 0u);
}

TEST_F(FullRing, WhoTakesAQuarterASecondLosesNothing)
{
	const uint32_t sent = fill(2);
	for (uint64_t now = kSecond; nodes[1].frames.size() < sent / 2; now += kSecond * 9 / 10) {
		maintain(now);
		EXPECT_FALSE(has_room());
		nodes[1].receive_some(sent / 4 + 1);
		maintain(now + 1);
	}
	while (!has_room())
		nodes[1].receive_some(1);
	EXPECT_EQ(take_room(), 1);
	EXPECT_FALSE(has_room());
	nodes[1].receive();
	EXPECT_EQ(nodes[1].frames.size(), sent);
	EXPECT_EQ(told("stats", "direct_lost"), 0u);
}

/* Who waited for it sends through the switch. */
TEST_F(FullRing, OfOneThatLeaves)
{
	fill(3);
	nodes.pop_back();
	settle();
	EXPECT_EQ(take_room(), 2);
	const uint64_t before = frames_through_switch();
	EXPECT_TRUE(send(3));
	settle();
	EXPECT_EQ(frames_through_switch(), before + 1);
}

TEST_F(FullRing, WithoutSwitchAllIsLost)
{
	fill(2);
	fill(9);
	server.reset();
	nodes[0].receive();
	EXPECT_FALSE(nodes[0].wire.up());
	EXPECT_EQ(take_room(), 1);
	EXPECT_EQ(take_room(), kThroughSwitch);
	EXPECT_EQ(take_room(), std::nullopt);
	EXPECT_TRUE(send(2)) << "lost";
}

TEST_F(FullRing, OfASlowOneLosesNothing)
{
	const std::string captured = path + ".pcap";
	/* With a capture, all frames pass the switch. */
	for (const std::string &way : {std::string("stats"), "capture " + captured}) {
		EXPECT_EQ(server->execute(way).substr(0, 2), "ok");
		nodes[1].frames.clear();
		uint32_t sent = 0;
		for (int round = 0; sent < 3000 && round < 10000; round++) {
			while (sent < 3000 && nodes[0].wire.send(frame(2, 1, sent, 5000)))
				sent++;
			EXPECT_FALSE(has_room());
			while (sent < 3000 && !take_room())
				settle();
		}
		settle();
		settle();
		settle();
		ASSERT_EQ(nodes[1].frames.size(), 3000u);
		for (uint32_t i = 0; i < 3000; i++)
			ASSERT_EQ(tag_of(nodes[1].frames[i]), i);
	}
	std::filesystem::remove(captured);
}

} // namespace
} // namespace tern::shm
