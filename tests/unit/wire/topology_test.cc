// SPDX-License-Identifier: GPL-2.0-or-later
/* Cards at the edges of a topology, under a clock that the test sets: what holds them back, where
 * their frames go, and what is counted. */
#include "qemu/wire/topology.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
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
	EXPECT_NE(a.waiting_for(), nullptr);
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

/* A guest pauses a lossless priority again and again. At 8 Mb/s the longest pause lasts 4.2 s, and
 * what the switch may hold of three cards takes less than a second. */
TEST_F(TopologyTest, ACardsPauseWithoutEndIsNotObeyedForEver)
{
	for (const bool is_off : {false, true}) {
		use(std::string(kTwo) + "[pfc]\npriorities = [0]\n" +
		    (is_off ? "watchdog = '0 s'\n" : ""));
		Card a = plug(0), b = plug(1);
		b.send(kBroadcast, 2, 1);
		const auto pause = pause_frame(0, kMaxQuanta);
		b.send(Bytes(pause.begin(), pause.end()));
		pass(10);
		a.send(2, 1, 1);
		pass(3000);
		EXPECT_EQ(b.got.size(), 0u);
		const bool storm =
		        topology->report().find("\"pause_storms\":1,\"storm_dropped\":1") !=
		        std::string::npos;
		EXPECT_NE(storm, is_off) << topology->report();
	}
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

/* Also while the one it replaces still waits for the link, whose frames let it resume. */
TEST_F(TopologyTest, ANewConnectionGetsTheFramesWhileTheOldOneWaits)
{
	use(kTwo);
	Card a = plug(0), b = plug(1);
	b.send(1, 2, 400);
	ASSERT_NE(b.waiting_for(), nullptr);
	Card another = plug(1);
	ASSERT_TRUE(b.dead());
	pass(10);
	a.send(2, 1, 1);
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
	/* From one to the other; also to an address that may be another one of the card. */
	lane0.send(roce(2, 2, qp_of(1)));
	EXPECT_EQ(lane1.got.size(), 3u);
	lane0.send(roce(9, 2, qp_of(1)));
	EXPECT_EQ(lane1.got.size(), 4u);
	lane0.send(roce(9, 2, qp_of(0)));
	EXPECT_EQ(lane0.got.size(), 1u);
	/* But not to one of another card. */
	a.send(kBroadcast, 1, 1);
	lane0.send(roce(1, 2, qp_of(1)));
	pass(10);
	EXPECT_EQ(lane1.got.size(), 4u);
}

/* A frame of @priority, by its VLAN tag. */
Bytes tagged(uint8_t to, uint8_t from, uint8_t priority)
{
	Bytes bytes = frame(to, from, 0, kFrame);
	bytes[12] = std::byte{0x81};
	bytes[13] = std::byte{0x00};
	bytes[14] = static_cast<std::byte>(priority << 5);
	bytes[15] = std::byte{0};
	return bytes;
}

/* One lane fills the queue of a priority, while the other sends little of another one. */
TEST_F(TopologyTest, ALaneDoesNotHideTheFullQueueOfAnother)
{
	use(kTwo);
	Card peer = plug(1);
	Card lane0(topology->edge(0), ethernet, 77, 0), lane1(topology->edge(0), ethernet, 77, 1);
	for (unsigned i = 0; i < 400; i++)
		lane0.send(tagged(2, 1, 0));
	const size_t left = lane0.outbox.size();
	ASSERT_GT(left, 380u);
	for (unsigned i = 0; i < 200; i++) {
		lane1.send(tagged(2, 1, 3));
		pass(1);
		EXPECT_EQ(lane1.waiting_for(), nullptr) << "there is room in its queue";
	}
	EXPECT_GT(lane0.outbox.size(), left - 5) << "the other priority is served first";
	pass(1000);
	EXPECT_EQ(lane0.outbox.size(), 0u);
}

/* A lane that resumes fills the queue again with its next frame. */
TEST_F(TopologyTest, LanesThatWaitForTheSameQueueTakeTurns)
{
	use(kTwo);
	Card peer = plug(1);
	Card lane0(topology->edge(0), ethernet, 77, 0), lane1(topology->edge(0), ethernet, 77, 1);
	lane0.send(2, 1, 400);
	lane1.send(2, 1, 400);
	const size_t left0 = lane0.outbox.size(), left1 = lane1.outbox.size();
	ASSERT_NE(lane0.waiting_for(), nullptr);
	ASSERT_NE(lane1.waiting_for(), nullptr);
	pass(200);
	EXPECT_NEAR(static_cast<double>(left0 - lane0.outbox.size()), 100, 2);
	EXPECT_NEAR(static_cast<double>(left1 - lane1.outbox.size()), 100, 2);
}

TEST_F(TopologyTest, FaultsConcernWhatACardGets)
{
	use(kTwo);
	Card a = plug(0), b = plug(1);
	ethernet.faults().set_percent(FaultSet::kLoss, 100);
	a.send(2, 1, 3);
	pass(10);
	EXPECT_EQ(b.got.size(), 0u);
	EXPECT_GT(ethernet.faults().counts.lost, 0u);
}

/* Two switches between hosts h1 and h2, and a third host at the second. */
const char *const kChain = "switch = [{ name = 's1' }, { name = 's2' }]\n"
                           "host = [{ name = 'h', count = 3 }]\n"
                           "[[link]]\nends = ['h1', 's1']\nrate = '8 Mb/s'\ndelay = '0 ns'\n"
                           "[[link]]\nends = ['s1', 's2']\nrate = '8 Mb/s'\ndelay = '0 ns'\n"
                           "[[link]]\nends = ['h[23]', 's2']\nrate = '8 Mb/s'\ndelay = '0 ns'\n";

struct LinkRulesTest : TopologyTest {
	LinkRulesTest()
	{
		use(kChain);
		for (size_t i = 0; i < 3; i++)
			cards.push_back(std::make_unique<Card>(topology->edge(i), ethernet));
		for (unsigned i = 0; i < 3; i++)
			cards[i]->send(kBroadcast, static_cast<uint8_t>(i + 1), 1);
		pass(100);
		for (auto &card : cards)
			card->got.clear();
	}
	void set(const char *rules) { ASSERT_EQ(ethernet.faults().add_rules(rules), ""); }
	/* Sends frames with tags from 0 from h1 to @to, each 3 ms after the one before, so that
	 * none waits for another. */
	void send(uint8_t to, uint32_t count)
	{
		for (uint32_t tag = 0; tag < count; tag++) {
			cards[0]->send(frame(to, 1, tag, kFrame));
			pass(3);
		}
	}
	std::vector<uint32_t> tags(size_t card) const
	{
		std::vector<uint32_t> found;
		for (const Bytes &bytes : cards[card]->got)
			found.push_back(tag_of(bytes));
		return found;
	}
	using Tags = std::vector<uint32_t>;

	std::vector<std::unique_ptr<Card>> cards;
};

TEST_F(LinkRulesTest, ActOnTheirLinkInTheirDirectionAlone)
{
	set("drop link=s1:s2 nth=2; drop link=s2:s1; drop link=s2:h3");
	send(2, 4);
	pass(20);
	EXPECT_EQ(tags(1), (Tags{0, 2, 3}));
	send(3, 2);
	pass(20);
	EXPECT_EQ(tags(2), Tags{});
	cards[1]->send(frame(1, 2, 9, kFrame));
	pass(20);
	EXPECT_EQ(tags(0), Tags{});
	EXPECT_EQ(ethernet.faults().counts.lost, 4u);
}

TEST_F(LinkRulesTest, WithoutALinkActWhereCardsGetFrames)
{
	set("count");
	send(2, 3);
	pass(20);
	EXPECT_EQ(ethernet.faults().rules()[0].rule.hits(), 3u);
	set("count link=*:s?");
	send(2, 3);
	pass(20);
	EXPECT_EQ(ethernet.faults().rules()[1].rule.hits(), 6u);
}

TEST_F(LinkRulesTest, DelayAndReorder)
{
	set("delay link=s1:s2 nth=1 by=30ms; reorder link=s1:s2 nth=4 by=2");
	send(2, 8);
	EXPECT_EQ(tags(1), (Tags{1, 2, 4, 5, 3, 6, 7}));
	pass(100);
	EXPECT_EQ(tags(1), (Tags{1, 2, 4, 5, 3, 6, 7, 0}));
	EXPECT_EQ(ethernet.faults().counts.delayed, 1u);
	EXPECT_EQ(ethernet.faults().counts.reordered, 1u);
	/* One that nothing overtakes goes by itself. */
	ethernet.faults().clear();
	set("reorder link=s1:s2 by=5 once");
	cards[1]->got.clear();
	send(2, 1);
	pass(50);
	EXPECT_EQ(tags(1), Tags{});
	pass(100);
	EXPECT_EQ(tags(1), Tags{0});
}

/* 64 MiB of memory, as on the switch without topology (RulesOnSwitchTest). */
TEST_F(LinkRulesTest, TooManySmallDelayedFramesAreDropped)
{
	constexpr size_t kSmall = 89; /* one byte more than the smallest slot has room for */
	const size_t room = (64u << 20) / (fabric::FramePool::slot_size(kSmall) + 256);
	set("delay link=s1:s2 by=60s");
	for (size_t i = 0; i < room + 1000; i++)
		cards[0]->send(frame(2, 1, 0, kSmall));
	pass(20'000);
	EXPECT_EQ(ethernet.faults().counts.lost, 1000u);
	pass(60'000);
	EXPECT_EQ(cards[1]->got.size(), room);
}

/* They are on the link, which may be up again when their time comes. */
TEST_F(LinkRulesTest, FramesThatAreHeldBackAreLostWithTheLink)
{
	for (const bool returns : {false, true}) {
		set("delay link=s1:s2 by=30ms; reorder link=s1:s2 nth=1 by=5");
		send(2, 2);
		EXPECT_EQ(topology->execute("link s1 s2 down"), "ok");
		if (returns) {
			EXPECT_EQ(topology->execute("link s1 s2 up"), "ok");
		}
		pass(300);
		EXPECT_EQ(tags(1), Tags{}) << returns;
		const std::string lost = "\"lost\":" + std::to_string(returns ? 4 : 2);
		EXPECT_NE(topology->report().find(lost), std::string::npos) << topology->report();
		EXPECT_EQ(topology->execute("link s1 s2 up"), "ok");
		ethernet.faults().clear();
	}
	send(2, 1);
	pass(10);
	EXPECT_EQ(tags(1), Tags{0});
}

TEST_F(LinkRulesTest, DuplicateAndCorrupt)
{
	set("duplicate link=h1:s1 nth=1; corrupt link=s1:s2 nth=3");
	send(2, 2);
	pass(20);
	ASSERT_EQ(cards[1]->got.size(), 3u);
	EXPECT_EQ(cards[1]->got[0], frame(2, 1, 0, kFrame));
	EXPECT_EQ(cards[1]->got[1], frame(2, 1, 0, kFrame));
	EXPECT_NE(cards[1]->got[2], frame(2, 1, 1, kFrame));
	EXPECT_EQ(cards[1]->got[2].size(), kFrame);
}

TEST_F(LinkRulesTest, NameTheLinksThatThereAre)
{
	EXPECT_EQ(ethernet.faults().add_rules("drop link=s1:h2"),
	          "rule 1: link: there is no link \"s1:h2\"; a link of a topology is FROM:TO, the "
	          "names of its ends");
	EXPECT_NE(ethernet.faults().add_rules("drop link=s1:s2,"), "");
	EXPECT_NE(ethernet.faults().add_rules("drop link="), "");
	EXPECT_FALSE(ethernet.faults().any());
	FaultSet without;
	EXPECT_NE(without.add_rules("drop link=s1:s2"), "");
}

/* A capture's lines: the interface of each frame, its tag and its comments. */
TEST_F(LinkRulesTest, CapturesAtCardsOrAtSomeLinks)
{
	const std::string path = testing::TempDir() + "tern-links.pcapng";
	const auto frames_with = [&](Capture::Options options) {
		EXPECT_EQ(capture.start(path, std::move(options)), "");
		send(2, 3);
		pass(20);
		EXPECT_EQ(capture.stop(), "");
		return capture.frames();
	};
	const auto text = [&] {
		std::ifstream file(path, std::ios::binary);
		return std::string(std::istreambuf_iterator(file), {});
	};
	set("drop link=s1:s2 nth=2");
	/* The one that is lost does not get to the card. */
	EXPECT_EQ(frames_with({}), 2u);
	EXPECT_NE(text().find("s2:h2"), std::string::npos);
	EXPECT_EQ(text().find("fault"), std::string::npos);
	set("drop link=s1:s2 nth=2");
	const auto links = faults::find_links("s1:s2", ethernet.faults().links());
	EXPECT_EQ(frames_with({.hosts = {}, .links = links}), 3u);
	EXPECT_NE(text().find("fault: drop, rule 2, on s1:s2"), std::string::npos);
	EXPECT_EQ(frames_with({.hosts = {3}, .links = links}), 0u);
	EXPECT_EQ(frames_with({.hosts = {1}, .links = links}), 3u);
	std::filesystem::remove(path);
}

TEST_F(LinkRulesTest, AreLoggedWithTheirLink)
{
	const std::string path = testing::TempDir() + "tern-links.jsonl";
	std::filesystem::remove(path);
	ASSERT_EQ(log.open(path), "");
	set("drop link=h1:s1 nth=2");
	send(2, 3);
	std::ifstream file(path);
	std::string line, more;
	ASSERT_TRUE(std::getline(file, line));
	EXPECT_NE(line.find("\"link\":\"h1:s1\",\"action\":\"drop\",\"cause\":\"rule 1\""),
	          std::string::npos)
	        << line;
	EXPECT_FALSE(std::getline(file, more));
	std::filesystem::remove(path);
}

/* The link of h1 loses @share of the frames. */
std::string lossy(const std::string &share)
{
	return "switch = [{ name = 'sw' }]\nhost = [{ name = 'h', count = 3 }]\n"
	       "[[link]]\nends = ['h1', 'sw']\nrate = '8 Mb/s'\ndelay = '0 ns'\nloss = " +
	       share + "\n[[link]]\nends = ['h[23]', 'sw']\nrate = '8 Mb/s'\ndelay = '0 ns'\n";
}

/* What all ends of links have lost, by the report. */
uint64_t lost_by(const std::string &report)
{
	const std::string key = "\"lost\":";
	uint64_t sum = 0;
	for (size_t at = report.find(key); at != report.npos; at = report.find(key, at + 1))
		sum += std::stoull(report.substr(at + key.size()));
	return sum;
}

TEST_F(TopologyTest, ALinkThatLosesAllIsLikeNone)
{
	use(lossy("1.0"));
	Card a = plug(0), b = plug(1), c = plug(2);
	a.send(2, 1, 20);
	pass(100);
	EXPECT_EQ(b.got.size() + c.got.size(), 0u);
	EXPECT_EQ(lost_by(topology->report()), 20u);
	/* The other direction loses all as well; the other links lose nothing. */
	b.send(kBroadcast, 2, 5);
	pass(100);
	EXPECT_EQ(a.got.size(), 0u);
	EXPECT_EQ(c.got.size(), 5u);
	EXPECT_EQ(lost_by(topology->report()), 25u);
}

TEST_F(TopologyTest, ALinkLosesItsShareByChance)
{
	constexpr size_t kSent = 400;
	use(lossy("0.5"));
	Card a = plug(0), b = plug(1);
	b.send(kBroadcast, 2, 1);
	pass(10);
	const uint64_t before = lost_by(topology->report());
	a.send(2, 1, kSent);
	pass(kSent + 100);
	const uint64_t lost = lost_by(topology->report()) - before;
	EXPECT_EQ(lost + b.got.size(), kSent);
	/* Five standard deviations. */
	EXPECT_NEAR(static_cast<double>(lost), kSent / 2, 50);
	EXPECT_TRUE(std::ranges::is_sorted(b.got, {}, tag_of)) << "the others keep their order";
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

/* Without a duration, too. */
TEST(TopologyFile, WhatIsForTheSimulatorIsCheckedAndHasNoEffect)
{
	EXPECT_EQ(describe_text(std::string(kTwo) + "[[flow]]\nfrom = 'h1'\nto = 'h*'\n"
	                                            "[[rule]]\naction = 'drop'\nto = 'h?'\n",
	                        "x"),
	          "{\"unused\":[\"flow\",\"rule\"],"
	          "\"hosts\":[{\"name\":\"h1\",\"cards\":[{\"name\":\"h1\",\"mbps\":8}]},"
	          "{\"name\":\"h2\",\"cards\":[{\"name\":\"h2\",\"mbps\":8}]},"
	          "{\"name\":\"h3\",\"cards\":[{\"name\":\"h3\",\"mbps\":8}]}]}");
	constexpr std::pair<const char *, const char *> kWrong[] = {
	        {"[[flows]]\n", "x:7: flows: there is no such key"},
	        {"[[flow]]\nfrom = 'nobody'\nto = 'h1'\n",
	         "x:8: flow.from: there is no host or switch \"nobody\""},
	        {"[congestion]\nalgorithm = 'cubic'\n", "x:8: congestion.algorithm: must be one of "
	                                                "none, dcqcn, timely"},
	        {"[[fault]]\nlink = ['h1', 'h2']\ndown = '1 ms'\n",
	         "x:8: fault.link: there is no link between \"h1\" and \"h2\""},
	        {"[[rule]]\naction = 'lose'\n",
	         "x:8: rule.action: \"lose\" is none; there are drop, "
	         "corrupt, mark, duplicate, delay, reorder and count"},
	};
	for (const auto &[text, expected] : kWrong) {
		std::string error;
		try {
			parse_topology(std::string(kTwo) + text, "x");
		} catch (const fabric::TomlError &wrong) {
			error = wrong.what();
		}
		EXPECT_EQ(error, expected);
	}
}

} // namespace
} // namespace tern::wire
