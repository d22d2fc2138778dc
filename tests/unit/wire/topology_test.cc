// SPDX-License-Identifier: GPL-2.0-or-later
/* Cards at the edges of a topology, under a clock that the test sets: what holds them back, where
 * their frames go, and what is counted. */
#include "qemu/wire/topology.h"

#include <gtest/gtest.h>

#include "qemu/rnic/formats/pause.h"
#include "tests/unit/wire/frames.h"

namespace tern::wire {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr size_t kFrame = 1000 - fabric::Port::kFrameOverhead;

class SetClock final : public Clock {
public:
	uint64_t now() override { return time; }

	uint64_t time = 1;
};

/* A card's connection: sends what is in its outbox as far as it need not wait. */
class Card final : public Port {
public:
	Card(Edge &edge, Switch &ethernet, uint64_t card = 0, uint32_t lane = 0)
	        : Port(edge, 1 << 20), edge_(edge)
	{
		id = ethernet.attach(*this);
		EXPECT_EQ(ethernet.place(id, card, lane), "");
		edge_.joined(*this);
	}
	~Card() override { edge_.left(*this); }

	void send(const Bytes &bytes)
	{
		outbox.push_back(bytes);
		if (!waiting_for_)
			forward_frames();
	}
	void send(uint8_t to, uint8_t from, unsigned count)
	{
		for (unsigned i = 0; i < count; i++)
			send(frame(to, from, i, kFrame));
	}

	bool deliver(Frame bytes) override
	{
		got.emplace_back(bytes.begin(), bytes.end());
		return true;
	}
	void flush() override {}
	void update_interest() override {}
	size_t queued() const override { return 0; }
	uint64_t consumed() const override { return 0; }

	std::deque<Bytes> outbox;
	std::vector<Bytes> got;

private:
	void forward_frames() override
	{
		while (!waiting_for_ && !outbox.empty()) {
			const Bytes bytes = outbox.front();
			outbox.pop_front();
			hand_on(bytes);
		}
	}

	Edge &edge_;
};

/* 8 Mb/s are a byte each microsecond, so a frame of kFrame takes a millisecond on each link. */
const char *const kTwo = "switch = [{ name = 'sw' }]\nhost = [{ name = 'h', count = 3 }]\n"
                         "[[link]]\nends = ['h*', 'sw']\nrate = '8 Mb/s'\ndelay = '0 ns'\n";

struct TopologyTest : testing::Test {
	void use(const std::string &text)
	{
		topology = std::make_unique<Topology>(parse_topology(text, "net.toml"), clock,
		                                      ethernet, recorder);
	}
	void pass(uint64_t milliseconds)
	{
		clock.time += milliseconds * kMillisecond;
		topology->advance();
	}
	Card plug(size_t edge) { return {topology->edge(edge), ethernet}; }

	SetClock clock;
	Switch ethernet;
	Capture capture;
	FaultLog log;
	Recorder recorder{ethernet, capture, log};
	std::unique_ptr<Topology> topology;
};

TEST_F(TopologyTest, ACardIsHeldBackToItsLinksRate)
{
	use(kTwo);
	Card a = plug(0), b = plug(1);
	b.send(1, 2, 1);
	pass(10);
	a.got.clear();
	a.send(2, 1, 200);
	EXPECT_EQ(a.waiting_for(), &topology->edge(0));
	EXPECT_GT(a.outbox.size(), 180u) << "what waits at the link is little";
	pass(101); /* the last of them is late by the second link */
	EXPECT_EQ(b.got.size(), 100u);
	pass(1000);
	EXPECT_EQ(b.got.size(), 200u);
	EXPECT_EQ(a.waiting_for(), nullptr);
	for (uint32_t i = 0; i < 200; i++)
		ASSERT_EQ(tag_of(b.got[i]), i);
}

TEST_F(TopologyTest, AStepOfManyMillisecondsLosesNoTime)
{
	use(kTwo);
	Card a = plug(0), b = plug(1);
	b.send(1, 2, 1);
	pass(10);
	a.send(2, 1, 1000);
	pass(501);
	EXPECT_EQ(b.got.size(), 500u);
}

TEST_F(TopologyTest, UnknownAddressesAreFloodedAndLearned)
{
	use(kTwo);
	Card a = plug(0), b = plug(1), c = plug(2);
	a.send(2, 1, 1);
	pass(10);
	EXPECT_EQ(b.got.size(), 1u);
	EXPECT_EQ(c.got.size(), 1u);
	b.send(1, 2, 1);
	pass(10);
	EXPECT_EQ(a.got.size(), 1u);
	EXPECT_EQ(c.got.size(), 1u);
	EXPECT_EQ(ethernet.stats().frames, 2u);
}

TEST_F(TopologyTest, AnAddressThatMovesIsFollowed)
{
	use(kTwo);
	Card a = plug(0), b = plug(1), c = plug(2);
	b.send(kBroadcast, 2, 1);
	c.send(kBroadcast, 2, 1);
	pass(10);
	b.got.clear();
	c.got.clear();
	a.send(2, 1, 1);
	pass(10);
	EXPECT_EQ(b.got.size(), 0u);
	EXPECT_EQ(c.got.size(), 1u);
}

/* Two cards send to a third as much as its link takes twice. */
TEST_F(TopologyTest, PausesAreTrueFramesAndHoldTheCardBack)
{
	use(std::string(kTwo) + "[pfc]\npriorities = [0]\nxoff = '8 KB'\nxon = '4 KB'\n");
	Card a = plug(0), b = plug(1), c = plug(2);
	c.send(kBroadcast, 3, 1);
	pass(10);
	a.got.clear();
	a.send(3, 1, 300);
	b.send(3, 2, 300);
	pass(700);
	EXPECT_EQ(c.got.size(), 600u);
	ASSERT_FALSE(a.got.empty());
	unsigned pauses = 0;
	for (const Bytes &bytes : a.got) {
		const auto times = parse_pause(bytes);
		ASSERT_TRUE(times) << "nothing else was sent to it";
		pauses += *(*times)[0] != 0;
	}
	const std::string told = topology->report();
	EXPECT_NE(told.find("\"pauses_received\":[" + std::to_string(pauses) + ",0,"), told.npos)
	        << told;
	EXPECT_NE(told.find("\"pfc_dropped\":0"), told.npos);
}

TEST_F(TopologyTest, ACardsOwnPauseHoldsTheSwitchBack)
{
	use(kTwo);
	Card a = plug(0), b = plug(1);
	b.send(kBroadcast, 2, 1);
	const auto pause = pause_frame(0, kMaxQuanta); /* for 4.2 s at 8 Mb/s */
	b.send(Bytes(pause.begin(), pause.end()));
	pass(10);
	a.send(2, 1, 1);
	pass(4000);
	EXPECT_EQ(b.got.size(), 0u);
	pass(400);
	EXPECT_EQ(b.got.size(), 1u);
}

TEST_F(TopologyTest, TheLastCardToConnectHasTheEdge)
{
	use(kTwo);
	Card a = plug(0), b = plug(1);
	Card another = plug(1);
	EXPECT_TRUE(b.dead());
	EXPECT_FALSE(another.dead());
	a.send(kBroadcast, 1, 1);
	pass(10);
	EXPECT_EQ(b.got.size(), 0u);
	EXPECT_EQ(another.got.size(), 1u);
}

TEST_F(TopologyTest, LanesOfACardShareItsEdge)
{
	use(kTwo);
	Card a = plug(0);
	Card lane0(topology->edge(1), ethernet, 77, 0), lane1(topology->edge(1), ethernet, 77, 1);
	EXPECT_FALSE(lane0.dead());
	lane1.send(kBroadcast, 2, 1);
	pass(10);
	a.send(roce(2, 1, qp_of(0)));
	a.send(roce(2, 1, qp_of(1)));
	a.send(roce(2, 1, qp_of(1)));
	pass(10);
	EXPECT_EQ(lane0.got.size(), 1u);
	EXPECT_EQ(lane1.got.size(), 2u);
	/* From one to the other. */
	lane0.send(roce(2, 2, qp_of(1)));
	EXPECT_EQ(lane1.got.size(), 3u);
}

TEST_F(TopologyTest, FaultsConcernWhatACardGets)
{
	use(kTwo);
	Card a = plug(0), b = plug(1);
	ethernet.faults().set_percent(Faults::kLoss, 100);
	a.send(2, 1, 3);
	pass(10);
	EXPECT_EQ(b.got.size(), 0u);
	EXPECT_GT(ethernet.stats().lost, 0u);
}

TEST_F(TopologyTest, TooLongFramesAreCounted)
{
	use(kTwo);
	Card a = plug(0);
	a.send(frame(2, 1, 0, kMaxEthFrame + 1));
	EXPECT_NE(topology->report().find("\"name\":\"h1\",\"connected\":true,\"too_long\":1"),
	          std::string::npos);
}

/* A square: two switches with a card each, and two ways between them. */
const char *const kSquare =
        "switch = [{ name = 'left' }, { name = 'up' }, { name = 'down' }, { name = 'right' }]\n"
        "host = [{ name = 'a' }, { name = 'b' }]\n"
        "link = [{ ends = ['a', 'left'] }, { ends = ['b', 'right'] },\n"
        "        { ends = ['left', '[ud]*'] }, { ends = ['right', '[ud]*'] }]\n";

TEST_F(TopologyTest, ALinkIsCutAndMended)
{
	use(kSquare);
	Card a = plug(0), b = plug(1);
	b.send(kBroadcast, 2, 1);
	pass(1);
	const auto arrive = [&] {
		b.got.clear();
		a.send(2, 1, 1);
		pass(1);
		return b.got.size();
	};
	EXPECT_EQ(arrive(), 1u);
	EXPECT_EQ(topology->execute("link left up down"), "ok");
	EXPECT_EQ(arrive(), 1u);
	EXPECT_EQ(topology->execute("link down right down"), "ok");
	EXPECT_EQ(arrive(), 0u);
	EXPECT_EQ(topology->execute("link left up up"), "ok");
	EXPECT_EQ(arrive(), 1u);
}

TEST_F(TopologyTest, Commands)
{
	use(kSquare);
	EXPECT_EQ(topology->execute("link left right down"),
	          "error there is no link between switches \"left\" and \"right\"");
	EXPECT_EQ(topology->execute("link a left down"),
	          "error there is no link between switches \"a\" and \"left\"");
	for (const char *line : {"link left up", "link left up sideways", "link left up up up"})
		EXPECT_EQ(topology->execute(line), "error link SWITCH SWITCH up|down") << line;
	EXPECT_EQ(topology->execute("fabric please"), "error fabric takes no argument");
	EXPECT_EQ(topology->execute("stats"), std::nullopt);
	EXPECT_EQ(topology->execute("fabric"), "ok " + topology->report());
}

TEST(TopologyFile, WhatIsForTheSimulatorIsIgnored)
{
	const auto plan = parse_topology(std::string(kTwo) + "[[flow]]\nfrom = 'nobody'\n", "x");
	EXPECT_EQ(describe(plan),
	          "{\"hosts\":[{\"name\":\"h1\",\"cards\":[{\"name\":\"h1\",\"mbps\":8}]},"
	          "{\"name\":\"h2\",\"cards\":[{\"name\":\"h2\",\"mbps\":8}]},"
	          "{\"name\":\"h3\",\"cards\":[{\"name\":\"h3\",\"mbps\":8}]}]}");
	EXPECT_THROW(parse_topology(std::string(kTwo) + "[[flows]]\n", "x"), fabric::TomlError);
}

} // namespace
} // namespace tern::wire
