// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/sim/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "qemu/sim/report.h"

namespace tern::sim {
namespace {

/** A scenario that has run. */
struct Finished {
	explicit Finished(const std::string &text) : scenario(parse_scenario(text, "test.toml"))
	{
		world.run();
	}

	const Scenario scenario;
	World world{scenario};
};

const std::string kWarmup = "warmup = '200 us'\n";
const std::string kFromTheStart = R"(
duration = "1 ms"
host = [{ name = "h", count = 2 }]
link = [{ ends = ["h1", "h2"], rate = "40 Gb/s" }]
[[flow]]
from = "h1"
to = "h2"
)";
const std::string kTwoHosts = kWarmup + kFromTheStart;

/* Of 1 KiB payload a frame has 60 to 80 bytes of headers, and the wire 24 more. */
TEST(World, AWriteFillsTheLink)
{
	const Finished run(kTwoHosts);
	EXPECT_GT(run.world.utilisation(0, 0), 0.98);
	EXPECT_NEAR(run.world.rate(0), 40e9 * 0.978, 40e9 * 0.01);
	EXPECT_GT(run.world.flows[0]->messages, 50u);
	EXPECT_EQ(run.world.flows[0]->error, 0);
}

TEST(World, EachServiceAndOperation)
{
	for (const char *more :
	     {"operation = 'send'\n", "operation = 'read'\n", "service = 'uc'\n",
	      "service = 'uc'\noperation = 'send'\n",
	      "service = 'ud'\noperation = 'send'\nsize = '1000 B'\ndepth = 64\n"}) {
		const Finished run(kTwoHosts + more);
		const bool reads = std::string(more).find("read") != std::string::npos;
		EXPECT_GT(run.world.utilisation(0, reads ? 1 : 0), 0.9) << more;
		EXPECT_GT(run.world.rate(0), 30e9) << more;
		EXPECT_EQ(run.world.flows[0]->error, 0) << more;
	}
}

TEST(World, AnOpenLoopHasItsRate)
{
	const Finished run(kTwoHosts + "size = '1024 B'\nrate = '4 Gb/s'\n");
	EXPECT_NEAR(static_cast<double>(run.world.flows[0]->messages), 0.8e-3 * 4e9 / 8192, 8);
	/* 36.57 ns each */
	const Finished small(kTwoHosts + "size = '32 B'\nrate = '7 Gb/s'\ndepth = 512\n");
	EXPECT_NEAR(static_cast<double>(small.world.flows[0]->messages), 0.8e-3 * 7e9 / 256, 200);
}

TEST(World, MessagesOfTheWarmupDoNotCount)
{
	const Finished run(kTwoHosts + "end = '100 us'\n");
	EXPECT_EQ(run.world.flows[0]->messages, 0u);
	EXPECT_TRUE(run.world.flows[0]->latencies.empty());
}

/* One of 20 messages waits for a timer: more than 1 % of the messages take that long. */
TEST(World, APercentileIsNotExceededByMore)
{
	Finished run(kFromTheStart + "messages = 20\ndepth = 1\nsize = '1 KiB'\ntimeout = 4\n"
	                             "[[rule]]\naction = 'drop'\nopcode = 'ACK'\nnth = 10\n");
	ASSERT_EQ(run.world.flows[0]->messages, 20u);
	const std::string json = to_json(run.world);
	const auto figure = [&json](const std::string &name) {
		return std::stod(json.substr(json.find(name) + name.size()));
	};
	EXPECT_LT(figure("\"median_us\": "), 20);
	EXPECT_GT(figure("\"p99_us\": "), 60);
}

TEST(World, AFlowEndsAfterItsMessagesOrAtItsEnd)
{
	const Finished counted(kFromTheStart + "messages = 7\n");
	EXPECT_EQ(counted.world.flows[0]->messages, 7u);
	const Finished timed(kFromTheStart + "start = '100 us'\nend = '300 us'\n");
	EXPECT_NEAR(static_cast<double>(timed.world.flows[0]->messages), 200e-6 * 40e9 / 524288, 4);
}

/* Cards and switches run ahead of each other. Yet each frame must arrive at its exact time. A card
 * takes 500 ns to send a message, 500 ns to acknowledge one, and 500 ns to complete one. */
TEST(World, AMessageTakesTheTimeOfItsWay)
{
	constexpr uint64_t kSteps = 3 * 500, kDelay = 1000, kData = 91, kAck = 7, kRounding = 10;
	const std::string hosts = "duration = '9 ms'\nhost = [{ name = 'h', count = 2 }]\n";
	const std::string flows = "[[flow]]\nfrom = 'h1'\nto = 'h2'\nsize = '1024 B'\n"
	                          "rate = '10 Mb/s'\n";
	const Finished direct(hosts + "link = [{ ends = ['h1', 'h2'] }]\n" + flows);
	const Finished switched(hosts + "switch = [{ name = 's' }]\n" +
	                        "link = [{ ends = ['h*', 's'] }]\n" + flows);
	ASSERT_FALSE(direct.world.flows[0]->latencies.empty());
	for (const uint64_t ns : direct.world.flows[0]->latencies)
		EXPECT_NEAR(static_cast<double>(ns), kSteps + 2 * kDelay + kData + kAck, kRounding);
	ASSERT_FALSE(switched.world.flows[0]->latencies.empty());
	for (const uint64_t ns : switched.world.flows[0]->latencies)
		EXPECT_NEAR(static_cast<double>(ns), kSteps + 4 * kDelay + 2 * (kData + kAck),
		            kRounding);
}

const std::string kAllToAll = R"(
duration = "1 ms"
host = [{ name = "h", count = 8 }]
switch = [{ name = "tor" }]
link = [{ ends = ["h*", "tor"] }]
[[flow]]
from = "h*"
to = "h*"
)";

uint64_t queued(const Finished &run)
{
	double sum = 0;
	for (size_t i = 0; i < run.world.queues.size(); i++)
		sum += run.world.mean_length(i);
	return static_cast<uint64_t>(sum);
}

TEST(World, CardsThatSendInTurnFillTheLinksButNotTheQueues)
{
	const Finished together(kAllToAll), in_turn(kAllToAll + "order = 'in turn'\n");
	EXPECT_LT(queued(in_turn), queued(together) / 4);
	for (size_t link = 0; link < 8; link++)
		EXPECT_GT(in_turn.world.utilisation(link, 0), 0.6);
	/* Each peer of a card has had its turn as often as the others. */
	for (size_t i = 0; i < in_turn.world.flows.size(); i++) {
		const size_t first = i - i % 7;
		EXPECT_NEAR(static_cast<double>(in_turn.world.flows[i]->messages),
		            static_cast<double>(in_turn.world.flows[first]->messages), 2);
	}
}

TEST(World, ThoseThatSendInTurnEndAfterTheirMessages)
{
	const Finished run(kAllToAll + "order = 'in turn'\nmessages = 3\n");
	for (const auto &flow : run.world.flows)
		EXPECT_EQ(flow->messages, 3u);
}

const std::string kIncast = R"(
duration = "3 ms"
switch = [{ name = "tor" }]
host = [{ name = "h", count = 9 }]
link = [{ ends = ["h*", "tor"], rate = "40 Gb/s" }]
[[flow]]
from = "h[2-9]"
to = "h1"
dscp = 26
)";

TEST(World, IncastDropsWithoutPfc)
{
	const Finished run(kIncast + "[queues]\nlimit = '100 KB'\n");
	uint64_t dropped = 0;
	for (const fabric::QueueRef &queue : run.world.queues)
		dropped += queue.stats().dropped;
	EXPECT_GT(dropped, 0u);
}

TEST(World, IncastIsLosslessWithPfc)
{
	Finished run(kIncast + "[pfc]\npriorities = [3]\nxoff = '60 KB'\nxon = '40 KB'\n");
	uint64_t pauses = 0;
	for (const fabric::QueueRef &queue : run.world.queues)
		EXPECT_EQ(queue.stats().dropped, 0u);
	for (unsigned i = 0; i < run.world.fabric.links(); i++) {
		const auto [host, tor] = run.world.fabric.ends(i);
		pauses += tor->stats().pauses_sent[3];
		/* One may be on its way. */
		EXPECT_LE(tor->stats().pauses_sent[3] - host->stats().pauses_received[3], 1u);
	}
	EXPECT_GT(pauses, 0u);
	EXPECT_EQ(run.world.fabric.at(0).stats().pfc_dropped, 0u);
	EXPECT_GT(run.world.utilisation(0, 1), 0.98);
	EXPECT_GT(fairness(run.world), 0.99);
}

/* The mean of the samples is about the integral. */
TEST(World, CurvesAgreeWithTotals)
{
	Finished run(kIncast + "[pfc]\npriorities = [3]\n");
	for (size_t i = 0; i < run.world.flows.size(); i++) {
		double sum = 0;
		for (const uint64_t rate : run.world.curves.rates[i])
			sum += static_cast<double>(rate);
		EXPECT_NEAR(sum / 200, run.world.rate(i), run.world.rate(i) / 50);
	}
	for (size_t i = 0; i < run.world.queues.size(); i++) {
		double sum = 0;
		for (const uint64_t length : run.world.curves.lengths[i])
			sum += static_cast<double>(length);
		EXPECT_NEAR(sum / 200, run.world.mean_length(i),
		            run.world.mean_length(i) / 10 + 100);
	}
}

/* Two senders, of which either fills the receiver's link, in priorities 0 and 3. */
const std::string kTwoPriorities = R"(
duration = "3 ms"
warmup = "200 us"
switch = [{ name = "tor" }]
host = [{ name = "h", count = 3 }]
link = [{ ends = ["h1", "tor"], rate = "40 Gb/s" }, { ends = ["h[23]", "tor"] }]
[[flow]]
from = "h2"
to = "h1"
[[flow]]
from = "h3"
to = "h1"
dscp = 26
)";

TEST(World, WeightsShareTheLink)
{
	const Finished run(kTwoPriorities + "[queues]\nweights = [1, 0, 0, 3, 0, 0, 0, 0]\n");
	EXPECT_NEAR(run.world.rate(1) / run.world.rate(0), 3, 0.15);
	EXPECT_GT(run.world.utilisation(0, 1), 0.98);
}

TEST(World, StrictPriorityComesFirst)
{
	const Finished run(kTwoPriorities);
	EXPECT_LT(run.world.rate(0), run.world.rate(1) / 100);
	EXPECT_GT(run.world.utilisation(0, 1), 0.98);
}

const std::string kTwoPaths = R"(
duration = "4 ms"
switch = [{ name = "leaf1" }, { name = "leaf2" }, { name = "spine1" }, { name = "spine2" }]
host = [{ name = "a", count = 4 }, { name = "b", count = 4 }]
[[link]]
ends = ["a*", "leaf1"]
[[link]]
ends = ["b*", "leaf2"]
[[link]]
ends = ["leaf*", "spine*"]
[[flow]]
from = "a*"
to = "b*"
)";

TEST(World, FlowsSurviveTheLossOfALink)
{
	Finished run(kTwoPaths + "[[fault]]\nlink = ['leaf1', 'spine1']\ndown = '1 ms'\n");
	uint64_t lost = 0;
	for (unsigned i = 0; i < run.world.fabric.links(); i++) {
		const auto [a, b] = run.world.fabric.ends(i);
		lost += a->stats().lost + b->stats().lost;
	}
	EXPECT_GT(lost, 0u);
	for (const auto &flow : run.world.flows) {
		EXPECT_EQ(flow->error, 0);
		EXPECT_GT(flow->messages, 0u);
	}
	/* Half of the paths are left, and all rates of the last sample go over them. */
	double last = 0;
	for (const auto &rates : run.world.curves.rates)
		last += static_cast<double>(rates.back());
	EXPECT_GT(last, 50e9);
}

/* The scenario has two hosts, two switches between them, and a flow of ten messages, each of which
 * takes 64 packets. */
const std::string kTwoSwitches = R"(
duration = "20 ms"
switch = [{ name = "s1" }, { name = "s2" }]
host = [{ name = "h", count = 2 }]
link = [{ ends = ["h1", "s1"] }, { ends = ["h2", "s2"] }, { ends = ["s1", "s2"] }]
[[flow]]
from = "h1"
to = "h2"
messages = 10
)";

std::vector<std::string> rules_of(const Finished &run)
{
	std::vector<std::string> told;
	for (const auto &[number, rule] : run.world.faults.rules())
		told.push_back(std::to_string(rule.matched()) + " " + std::to_string(rule.hits()));
	return told;
}

TEST(World, RulesActOnOneLink)
{
	const Finished run(kTwoSwitches + "[[rule]]\naction = 'drop'\nlink = 's1:s2'\n"
	                                  "opcode = 'WRITE'\npsn = '+4'\nonce = true\n"
	                                  "[[rule]]\naction = 'count'\nlink = 's2:s1'\n"
	                                  "opcode = 'NAK'\n"
	                                  "[[rule]]\naction = 'count'\nto = 'h2'\n"
	                                  "psn = '+4'\nretransmission = 'yes'\n");
	EXPECT_EQ(run.world.flows[0]->messages, 10u);
	EXPECT_EQ(run.world.flows[0]->error, 0u);
	EXPECT_EQ(rules_of(run), (std::vector<std::string>{"1 1", "1 1", "1 1"}));
	ASSERT_FALSE(run.world.fault_notes.empty());
	const FaultNote &first = run.world.fault_notes[0];
	EXPECT_EQ(run.world.faults.links()[first.link_end].name, "s1:s2");
	ASSERT_TRUE(first.packet);
	EXPECT_EQ(first.packet->psn.value(), 4u);
}

/* A corrupted packet has a wrong ICRC, so it is lost; a mark makes the receiver send a CNP; an
 * overtaken packet is a gap; a message is as late as its acknowledgement. */
TEST(World, EachFaultHasItsConsequence)
{
	const auto run = [](const std::string &rule) {
		return Finished(kTwoSwitches + "[congestion]\nalgorithm = 'dcqcn'\n[[rule]]\n" +
		                rule +
		                "[[rule]]\naction = 'count'\nfrom = 'h2'\nopcode = 'NAK'\n"
		                "[[rule]]\naction = 'count'\nfrom = 'h2'\nopcode = 'CNP'\n"
		                "[[rule]]\naction = 'count'\nto = 'h2'\n"
		                "retransmission = 'yes'\n");
	};
	using Counts = std::vector<std::string>;
	EXPECT_EQ(rules_of(run("action = 'corrupt'\nto = 'h2'\nnth = 639\n")),
	          (Counts{"639 1", "1 1", "0 0", "2 2"}));
	EXPECT_EQ(rules_of(run("action = 'mark'\nlink = 's1:s2'\nnth = 9\n")),
	          (Counts{"9 1", "0 0", "1 1", "0 0"}));
	EXPECT_EQ(rules_of(run("action = 'duplicate'\nlink = 's1:s2'\nnth = 9\n")),
	          (Counts{"9 1", "0 0", "0 0", "1 1"}));
	EXPECT_EQ(rules_of(run("action = 'reorder'\nby = 1\nlink = 's1:s2'\nnth = 640\n"))[0],
	          "640 1");
	const Finished late(run("action = 'delay'\nby = '5ms'\nlink = 's1:h1'\nopcode = 'ACK'\n"));
	ASSERT_GT(late.world.flows[0]->messages, 2u);
	EXPECT_GE(*std::ranges::min_element(late.world.flows[0]->latencies), 5'000'000u);
}

/* The link of h2 loses one frame in a hundred, data and acknowledgements alike. */
TEST(World, LossOfALinkIsRepaired)
{
	const Finished run("duration = '20 ms'\n"
	                   "host = [{ name = 'h', count = 2 }]\nswitch = [{ name = 'tor' }]\n"
	                   "link = [{ ends = ['h1', 'tor'] },\n"
	                   "        { ends = ['h2', 'tor'], loss = 0.01 }]\n"
	                   "flow = [{ from = 'h1', to = 'h2', messages = 100, timeout = 4 }]\n"
	                   "rule = [{ action = 'count', retransmission = 'yes' }]\n");
	const auto [host, tor] = run.world.fabric.ends(1);
	EXPECT_GT(host->stats().lost, 0u);
	EXPECT_GT(tor->stats().lost, 0u);
	EXPECT_EQ(run.world.flows[0]->error, 0);
	EXPECT_EQ(run.world.flows[0]->messages, 100u);
	EXPECT_GT(run.world.faults.rules()[0].rule.hits(), tor->stats().lost);
}

/* Jitter varies the delay of a frame by 5 us. A sender sends 50 frames in this time. If frames
 * overtook one another, the receiver would send NAKs. */
TEST(World, JitterDelaysMessages)
{
	constexpr uint64_t kJitter = 5000;
	const auto run = [](const std::string &jitter) {
		return Finished("duration = '2 ms'\nhost = [{ name = 'h', count = 2 }]\n"
		                "link = [{ ends = ['h1', 'h2'], jitter = '" +
		                jitter +
		                "' }]\nflow = [{ from = 'h1', to = 'h2', depth = 1 }]\n"
		                "rule = [{ action = 'count', opcode = 'NAK' },\n"
		                "        { action = 'count', retransmission = 'yes' }]\n");
	};
	const Finished without(run("0 ns")), with_it(run("5 us"));
	const auto &exact = without.world.flows[0]->latencies;
	const auto &varied = with_it.world.flows[0]->latencies;
	ASSERT_GT(varied.size(), 50u);
	const uint64_t least = std::ranges::max(exact);
	EXPECT_GT(std::ranges::min(varied), least);
	EXPECT_LE(std::ranges::max(varied), least + 2 * kJitter);
	/* The last data frame is about as late as the latest, the acknowledgement is late by half
	 * of the jitter on average. */
	const double mean = std::accumulate(varied.begin(), varied.end(), 0.0) /
	                    static_cast<double>(varied.size());
	EXPECT_NEAR(mean, static_cast<double>(least + kJitter * 3 / 2), kJitter / 5);
	EXPECT_EQ(rules_of(without), (std::vector<std::string>{"0 0", "0 0"}));
	EXPECT_EQ(rules_of(with_it), (std::vector<std::string>{"0 0", "0 0"}));
	EXPECT_EQ(with_it.world.flows[0]->error, 0);
}

TEST(World, TheSameSeedGivesTheSameBytes)
{
	const std::string text = kTwoPaths + "[ecn]\nkmin = '5 KB'\nkmax = '200 KB'\n"
	                                     "pmax = 0.01\n";
	const auto result = [&](int seed) {
		Finished run("seed = " + std::to_string(seed) + text);
		return to_json(run.world);
	};
	EXPECT_EQ(result(1), result(1));
	EXPECT_NE(result(1), result(2));
}

/* Each of the 10,000 QPs has its share of the 30 us. */
TEST(World, AThousandCards)
{
	const auto result = [] {
		Finished run("duration = '30 us'\nsample = '30 us'\n"
		             "host = [{ name = 'h', count = 1000 }]\n"
		             "switch = [{ name = 'tor' }]\nlink = [{ ends = ['h*', 'tor'] }]\n"
		             "[[flow]]\nfrom = 'h*'\nto = 'h*'\npeers = 10\nsize = '4 KiB'\n");
		EXPECT_EQ(std::ranges::count_if(run.world.flows,
		                                [](const auto &flow) {
			                                return !flow->error && flow->messages > 0;
		                                }),
		          10'000);
		return to_json(run.world);
	};
	/* The texts are too long to be shown. */
	EXPECT_TRUE(result() == result());
}

} // namespace
} // namespace tern::sim
