// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/sim/scenario.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tern::sim {
namespace {

/* Line 1 is the duration; lines 2 to 5 are the hosts and switch; 6 to 11 links and a flow. */
const std::string kGood = R"(duration = "1 ms"
host = [
    { name = "h", count = 3 },
]
switch = [{ name = "tor" }]
[[link]]
ends = ["h*", "tor"]
rate = "40 Gb/s"
[[flow]]
from = "h2"
to = "h1"
)";

TEST(Scenario, Good)
{
	const Scenario s = parse_scenario(kGood, "good.toml");
	EXPECT_EQ(s.duration, 1'000'000u);
	EXPECT_EQ(s.cards, (std::vector<std::string>{"h1", "h2", "h3"}));
	ASSERT_EQ(s.links.size(), 3u);
	EXPECT_EQ(s.links[2].config.rate, 40'000'000'000u);
	ASSERT_EQ(s.flows.size(), 1u);
	EXPECT_EQ(s.flows[0].from, 1u);
	EXPECT_EQ(s.flows[0].to, 0u);
	EXPECT_EQ(s.flows[0].end, s.duration);
}

TEST(Scenario, CardsOfAHostAreNumbered)
{
	const Scenario s = parse_scenario("duration = '1 ms'\n"
	                                  "host = [{ name = 'a', cards = 2 }, { name = 'b' },\n"
	                                  "        { name = 'c' }]\n"
	                                  "link = [{ ends = ['a.1', 'b'] }, "
	                                  "{ ends = ['a.2', 'c'] }]\n",
	                                  "cards.toml");
	EXPECT_EQ(s.cards, (std::vector<std::string>{"a.1", "a.2", "b", "c"}));
}

TEST(Scenario, AllToAllAndAFewPeers)
{
	EXPECT_EQ(parse_scenario(kGood + "[[flow]]\nfrom = 'h*'\nto = 'h*'\n", "x").flows.size(),
	          1u + 6);
	const Scenario s = parse_scenario(
	        kGood + "[[flow]]\nfrom = 'h*'\nto = 'h*'\npeers = 1\nqps = 2\n", "x");
	ASSERT_EQ(s.flows.size(), 1u + 6);
	EXPECT_EQ(s.flows[1].to, 1u) << "the next one";
	EXPECT_EQ(s.flows[5].to, 0u) << "around";
}

TEST(Scenario, MorePeersThanCardsAreAllCards)
{
	const Scenario s = parse_scenario(
	        kGood + "[[flow]]\nfrom = 'h1'\nto = ['h2', 'h3']\npeers = 7\n", "x");
	ASSERT_EQ(s.flows.size(), 1u + 2);
	EXPECT_EQ((std::set{s.flows[1].to, s.flows[2].to}), (std::set{1u, 2u})) << "each once";
}

TEST(Scenario, CardsThatSendInTurnDoNotMeet)
{
	const Scenario s = parse_scenario("duration = '1 ms'\n"
	                                  "host = [{ name = 'h', count = 25 }]\n"
	                                  "switch = [{ name = 'tor' }]\n"
	                                  "link = [{ ends = ['h*', 'tor'] }]\n"
	                                  "[[flow]]\nfrom = 'h*'\nto = 'h*'\npeers = 10\n"
	                                  "order = 'in turn'\n",
	                                  "x");
	ASSERT_EQ(s.flows.size(), 250u);
	EXPECT_EQ(s.rotations, 25u);
	for (size_t step = 0; step < 10; step++) {
		std::set<unsigned> receivers;
		for (size_t card = 0; card < 25; card++) {
			const Scenario::Flow &flow = s.flows[10 * card + step];
			EXPECT_EQ(flow.from, card);
			EXPECT_EQ(flow.rotation, card + 1);
			receivers.insert(flow.to);
		}
		EXPECT_EQ(receivers.size(), 25u) << step;
	}
	EXPECT_EQ(parse_scenario(kGood, "x").flows[0].rotation, 0u);
}

TEST(Scenario, HeadroomFollowsFromTheLongestLink)
{
	const Scenario s = parse_scenario(kGood + "[pfc]\npriorities = [3]\n", "x");
	EXPECT_EQ(s.queues.pfc.lossless, 1 << 3);
	EXPECT_EQ(s.queues.pfc.headroom, fabric::headroom_for(s.links[0].config));
}

TEST(Scenario, CongestionControl)
{
	using enum CongestionAlgorithm;
	EXPECT_EQ(parse_scenario(kGood, "x").congestion.algorithm(), None);
	const Scenario s = parse_scenario(kGood + "[congestion]\nalgorithm = 'dcqcn'\n"
	                                          "defaults = 'sigcomm2015'\nrp_ai_rate = 7\n",
	                                  "x");
	EXPECT_EQ(s.congestion.algorithm(), Dcqcn);
	EXPECT_EQ(s.congestion.rp_time_reset, sigcomm2015().rp_time_reset);
	EXPECT_EQ(s.congestion.rp_ai_rate, 7u);
}

/** What is added to the good scenario, and the error that it causes. */
struct Bad {
	const char *text;
	const char *error;
};

class BadScenario : public ::testing::TestWithParam<Bad> {};

TEST_P(BadScenario, IsRefusedWithFileLineAndKey)
{
	try {
		parse_scenario(kGood + GetParam().text, "bad.toml");
		FAIL() << "accepted";
	} catch (const fabric::TomlError &error) {
		EXPECT_EQ(std::string(error.what()).substr(0, std::string(GetParam().error).size()),
		          GetParam().error);
	}
}

INSTANTIATE_TEST_SUITE_P(
        Each, BadScenario,
        ::testing::Values(
                Bad{"[[link]]\nends = ['tor', 'spine9']\n",
                    "bad.toml:13: link.ends: there is no host or switch \"spine9\""},
                Bad{"[[link]]\nends = ['h1', 'tor']\n",
                    "bad.toml:13: link.ends: \"h1\" has a link already"},
                Bad{"[[link]]\nends = ['tor', 'tor']\n",
                    "bad.toml:13: link.ends: \"tor\" cannot be linked to itself"},
                Bad{"[[link]]\nends = ['tor']\n", "bad.toml:13: link.ends: must be two names"},
                Bad{"[[link]]\nends = ['tor', 'tor']\nrate = '0 Gb/s'\n",
                    "bad.toml:14: link.rate: must be from 1 Mb/s to 1000000 Gb/s"},
                Bad{"[[link]]\nends = ['tor', 'tor']\nrate = '10 Gbit'\n",
                    "bad.toml:14: link.rate: must be a number with one of the units b/s, kb/s"},
                Bad{"[[link]]\nends = ['tor', 'tor']\nrate = 10\n",
                    "bad.toml:14: link.rate: must be a string"},
                Bad{"[[link]]\nends = ['tor', 'tor']\nrate = '-1 Gb/s'\n",
                    "bad.toml:14: link.rate: must be from 1 Mb/s to 1000000 Gb/s"},
                Bad{"[[link]]\nends = ['tor', 'tor']\nrate = 'nan Gb/s'\n",
                    "bad.toml:14: link.rate: must be from 1 Mb/s to 1000000 Gb/s"},
                Bad{"[[link]]\nrate = '1 Gb/s'\n", "bad.toml:12: link.ends: is missing"},
                Bad{"[queues]\nlimits = '1 MB'\n",
                    "bad.toml:13: queues.limits: there is no such key"},
                Bad{"[queues]\nweights = [1, 2]\n",
                    "bad.toml:13: queues.weights: must be eight numbers"},
                Bad{"[ecn]\nkmin = '9 KB'\nkmax = '8 KB'\n",
                    "bad.toml:13: ecn.kmin: must not exceed kmax"},
                Bad{"[ecn]\nkmax = '8 KB'\npmax = 1.5\n",
                    "bad.toml:14: ecn.pmax: must be a number from 0 to 1"},
                Bad{"[pfc]\npriorities = [8]\n",
                    "bad.toml:13: pfc.priorities: must be a whole number from 0 to 7"},
                Bad{"[pfc]\npriorities = [3]\nxoff = '1 KB'\nxon = '2 KB'\n",
                    "bad.toml:15: pfc.xon: must not exceed xoff"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = 'tor'\n",
                    "bad.toml:14: flow.to: \"tor\" is a switch"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = 'h1'\n",
                    "bad.toml:14: flow.to: there is no flow from a card to itself"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = []\n", "bad.toml:14: flow.to: must name a card"},
                Bad{"[[flow]]\nfrom = []\nto = 'h1'\n", "bad.toml:13: flow.from: must name a card"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = 'h2'\nservice = 'xrc'\n",
                    "bad.toml:15: flow.service: must be one of rc, uc, ud"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = 'h2'\nservice = 'ud'\n",
                    "bad.toml:12: flow.operation: ud has only send"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = 'h2'\nservice = 'ud'\noperation = 'send'\n",
                    "bad.toml:12: flow.size: a datagram has at most 1024 bytes"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = 'h2'\nstart = '2 us'\nend = '1 us'\n",
                    "bad.toml:16: flow.end: must be after the start"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = 'h2'\ndepth = 0\n",
                    "bad.toml:15: flow.depth: must be a whole number from 1 to 1024"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = 'h2'\norder = 'by turns'\n",
                    "bad.toml:15: flow.order: must be one of together, in turn"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = 'h2'\norder = 'in turn'\nrate = '1 Gb/s'\n",
                    "bad.toml:15: flow.order: flows with a rate do not wait for each other"},
                Bad{"[[flow]]\nfrom = 'h1'\nto = 'h2'\ndepth = 1024\nqps = 2048\n",
                    "bad.toml:15: flow.depth: makes more than"},
                Bad{"[[fault]]\nlink = ['h1', 'h2']\ndown = '1 us'\n",
                    "bad.toml:13: fault.link: there is no link between \"h1\" and \"h2\""},
                Bad{"[[fault]]\nlink = ['h1', 'tor']\ndown = '5 us'\nup = '1 us'\n",
                    "bad.toml:15: fault.up: must be after down"},
                Bad{"[[rule]]\nlink = 'h1:tor'\n", "bad.toml:12: rule.action: is missing"},
                Bad{"[[rule]]\naction = 'lose'\n", "bad.toml:13: rule.action: \"lose\" is none"},
                Bad{"[[rule]]\naction = 'drop'\nlink = 'h1:h2'\n",
                    "bad.toml:14: rule.link: there is no link \"h1:h2\""},
                Bad{"[[rule]]\naction = 'drop'\nfrom = 'h9'\n",
                    "bad.toml:14: rule.from: there is no host or switch \"h9\""},
                Bad{"[[rule]]\naction = 'drop'\nto = 'tor'\n",
                    "bad.toml:14: rule.to: \"tor\" is a switch"},
                Bad{"[[rule]]\naction = 'delay'\n", "bad.toml:12: rule.by: is missing"},
                Bad{"[[rule]]\naction = 'drop'\nevery = 0\n",
                    "bad.toml:14: rule.every: needs a number from 1"},
                Bad{"[[rule]]\naction = 'drop'\npsn = [1]\n",
                    "bad.toml:14: rule.psn: must be a string"},
                Bad{"[[rule]]\naction = 'drop'\nopcode = 'ACK once'\n",
                    "bad.toml:14: rule.opcode: \"ACK once\" has a blank or a semicolon"},
                Bad{"[[rule]]\naction = 'drop'\nonce = 'true'\n",
                    "bad.toml:14: rule.once: must be true or false"},
                Bad{"[[rule]]\naction = 'drop'\nspeed = 1\n",
                    "bad.toml:14: rule.speed: there is no such key"},
                Bad{"[congestion]\nalgorithm = 'cubic'\n",
                    "bad.toml:13: congestion.algorithm: must be one of none, dcqcn, timely"},
                Bad{"[congestion]\nrp_gd = 9\n",
                    "bad.toml:13: congestion.rp_gd: must be a whole number from 10 to 15"},
                Bad{"[congestion]\nrp_ai_rate = 0\n",
                    "bad.toml:13: congestion.rp_ai_rate: must be a whole number from 1 to 4000000"},
                Bad{"[congestion]\nnp_cnp_dscp = 64\n",
                    "bad.toml:13: congestion.np_cnp_dscp: must be a whole number from 0 to 63"},
                Bad{"[congestion]\nrp_clamp_tgt_rate = 4294967296\n",
                    "bad.toml:13: congestion.rp_clamp_tgt_rate: must be a whole number from 0 to "
                    "1"},
                Bad{"[congestion]\nrp_speed = 9\n",
                    "bad.toml:13: congestion.rp_speed: there is no such key"},
                Bad{"[[host]\n", "bad.toml:12: "}));

/* As in a lab a host's name means all its cards, and an address needs no name. */
TEST(Scenario, HostsOfRules)
{
	const Scenario s = parse_scenario("duration = '1 ms'\n"
	                                  "host = [{ name = 'a', cards = 2 }, { name = 'b' }]\n"
	                                  "switch = [{ name = 'tor' }]\n"
	                                  "link = [{ ends = ['[ab]*', 'tor'] }]\n"
	                                  "[[rule]]\naction = 'drop'\n"
	                                  "to = 'b,52:54:00:77:00:09'\nfrom = 'a'\n",
	                                  "x");
	ASSERT_EQ(s.rules.size(), 1u);
	EXPECT_EQ(s.rules[0].shown, "drop to=b,52:54:00:77:00:09 from=a");
	EXPECT_EQ(s.rules[0].text, "drop to=02:7e:44:00:00:03,52:54:00:77:00:09 "
	                           "from=02:7e:44:00:00:01,02:7e:44:00:00:02");
}

TEST(Scenario, ANameForTwoThings)
{
	const auto error = [](const std::string &text) -> std::string {
		try {
			parse_scenario("duration = '1 ms'\n" + text, "bad.toml");
			return "accepted";
		} catch (const fabric::TomlError &e) {
			return e.what();
		}
	};
	EXPECT_EQ(error("[[host]]\nname = 'a'\n[[host]]\nname = 'a'\n"),
	          "bad.toml:5: host.name: there is a \"a\" already");
	EXPECT_EQ(error("[[switch]]\nname = 'a'\n[[host]]\nname = 'a'\n"),
	          "bad.toml:5: host.name: there is a \"a\" already");
	/* Also if the cards have other names than the host. */
	EXPECT_EQ(error("[[host]]\nname = 'a'\ncards = 2\n[[host]]\nname = 'a'\n"),
	          "bad.toml:6: host.name: there is a \"a\" already");
	EXPECT_EQ(error("[[switch]]\nname = 'a'\n[[host]]\nname = 'a'\ncards = 2\n"),
	          "bad.toml:5: host.name: there is a \"a\" already");
	EXPECT_EQ(error("[[switch]]\nname = 'tor'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n"
	                "[[link]]\nends = ['a', 'tor']\n"),
	          "bad.toml:7: host.name: \"b\" has no link");
	EXPECT_EQ(error("mtu = 1500\n"), "bad.toml:2: mtu: must be a power of two");
	EXPECT_EQ(error("warmup = '1 ms'\n"), "bad.toml:2: warmup: must be less than the duration");
	EXPECT_EQ(error("host = 3\n"), "bad.toml:2: host: must be tables, [[host]]");
}

TEST(Scenario, MoreThanThereIsRoomFor)
{
	const auto error = [](const std::string &text) {
		try {
			parse_scenario(text, "bad.toml");
			return std::string();
		} catch (const fabric::TomlError &wrong) {
			return std::string(wrong.what());
		}
	};
	std::string rules = kGood;
	for (int i = 0; i < 64; i++)
		rules += "[[rule]]\naction = 'count'\n";
	EXPECT_EQ(error(rules), "");
	EXPECT_NE(error(rules + "[[rule]]\naction = 'drop'\n").find("there may be 64 rules"),
	          std::string::npos);
	EXPECT_EQ(error("duration = '1 ms'\nswitch = [{ name = 'tor' }]\n"
	                "host = [{ name = 'h', count = 70000 }]\n"
	                "link = [{ ends = ['h*', 'tor'] }]\n"
	                "flow = [{ from = 'h1', to = 'h2' }]\n"),
	          "bad.toml:4: link.ends: \"tor\" has more than 65535 ports");
}

TEST(Scenario, AFileThatIsNotThere)
{
	try {
		read_scenario("/nonexistent/scenario.toml");
		FAIL() << "accepted";
	} catch (const fabric::TomlError &error) {
		EXPECT_EQ(std::string(error.what()).find("/nonexistent/scenario.toml: "), 0u)
		        << error.what();
	}
}

} // namespace
} // namespace tern::sim
