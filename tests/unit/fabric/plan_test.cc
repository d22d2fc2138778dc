// SPDX-License-Identifier: GPL-2.0-or-later
/* What a file says of switches, hosts and links, for tern-sim and tern-switch alike. */
#include "qemu/fabric/plan.h"

#include <gtest/gtest.h>

namespace tern::fabric {
namespace {

constexpr size_t kMaxCards = 64;

Plan plan_of(const std::string &text)
{
	const toml::table table = parse_toml(text, "net.toml");
	const std::string path = "net.toml";
	TomlTable file(table, "", path);
	Plan plan;
	read_plan(file, kMaxCards, plan);
	file.end();
	return plan;
}

/* Two lines. */
const std::string kNet = "switch = [{ name = 'tor' }, { name = 'spine' }]\n"
                         "host = [{ name = 'a' }, { name = 'b', count = 2, cards = 2 }]\n";
/* Four lines more, of which each is needed. */
const std::string kLinks = "[[link]]\nends = ['a', 'tor']\nrate = '200 Mb/s'\n"
                           "[[link]]\nends = ['b*', 'tor']\n";

TEST(Plan, HostsAndTheirCards)
{
	const Plan plan = plan_of(kNet + kLinks);
	ASSERT_EQ(plan.hosts.size(), 3u);
	EXPECT_EQ(plan.hosts[1].name, "b1");
	EXPECT_EQ(plan.hosts[1].first, 1u);
	EXPECT_EQ(plan.hosts[1].cards, 2u);
	EXPECT_EQ(plan.cards, (std::vector<std::string>{"a", "b1.1", "b1.2", "b2.1", "b2.2"}));
	EXPECT_EQ(plan.card_rates()[0], 200'000'000u);
	EXPECT_EQ(plan.card_rates()[4], LinkConfig().rate);
}

TEST(Plan, JitterAndLoss)
{
	const Plan plan =
	        plan_of(kNet + kLinks +
	                "[[link]]\nends = ['tor', 'spine']\njitter = '2 us'\nloss = 0.01\n");
	EXPECT_EQ(plan.links.back().config.jitter, 2000u);
	EXPECT_EQ(plan.links.back().config.loss, 0.01);
	EXPECT_EQ(plan.links.front().config.loss, 0);
}

/* There are five ports of switches, and the slowest link has 200 Mb/s. */
TEST(Plan, WatchdogOfPfc)
{
	const std::string pfc = "[pfc]\npriorities = [3]\n";
	const Plan none = plan_of(kNet + kLinks + pfc);
	EXPECT_FALSE(none.has_watchdog);
	EXPECT_EQ(none.queues.pfc.watchdog, 0u);
	EXPECT_EQ(watchdog_for(none), 200'000'000u);
	const Plan large = plan_of(kNet + kLinks + pfc + "xoff = '9 MB'\nheadroom = '1 MB'\n");
	EXPECT_EQ(watchdog_for(large), 5 * 400'000'000u) << "it sends 10 MB in 400 ms";
	const Plan off = plan_of(kNet + kLinks + pfc + "watchdog = '0 s'\n");
	EXPECT_TRUE(off.has_watchdog);
	EXPECT_EQ(off.queues.pfc.watchdog, 0u);
	const Plan given = plan_of(kNet + kLinks + pfc + "watchdog = '50 ms'\n");
	EXPECT_EQ(given.queues.pfc.watchdog, 50'000'000u);
}

TEST(Plan, FindsALinkFromEitherEnd)
{
	const Plan plan = plan_of(kNet + kLinks);
	const Fabric::End b11{Fabric::End::Kind::Host, 1}, tor{Fabric::End::Kind::Switch, 0},
	        spine{Fabric::End::Kind::Switch, 1};
	using Links = std::vector<unsigned>;
	EXPECT_EQ(find_links(plan, b11, tor), Links{1});
	EXPECT_EQ(find_links(plan, tor, b11), Links{1});
	EXPECT_EQ(find_links(plan, tor, spine), Links{});
}

struct Bad {
	const char *text;
	const char *error;
};

class BadPlan : public testing::TestWithParam<Bad> {};

TEST_P(BadPlan, IsRefusedWithFileLineAndKey)
{
	try {
		plan_of(kNet + GetParam().text);
		FAIL() << "accepted";
	} catch (const TomlError &error) {
		EXPECT_EQ(std::string(error.what()), GetParam().error);
	}
}

INSTANTIATE_TEST_SUITE_P(
        Each, BadPlan,
        testing::Values(Bad{"[[link]]\nends = ['a', 'tor9']\n",
                            "net.toml:4: link.ends: there is no host or switch \"tor9\""},
                        Bad{"[[link]]\nends = ['a', 'tor']\nrate = '0 Mb/s'\n",
                            "net.toml:5: link.rate: must be from 1 Mb/s to 1000000 Gb/s"},
                        Bad{"[[link]]\nends = ['a', 'tor']\nrate = '999 kb/s'\n",
                            "net.toml:5: link.rate: must be from 1 Mb/s to 1000000 Gb/s"},
                        Bad{"[[link]]\nends = ['a', 'tor']\nloss = 2\n",
                            "net.toml:5: link.loss: must be a number from 0 to 1"},
                        Bad{"[[link]]\nends = ['a', 'tor']\n",
                            "net.toml:2: host.name: \"b1.1\" has no link"}));

std::string error_of(const std::string &text)
{
	try {
		plan_of(text);
	} catch (const TomlError &error) {
		return error.what();
	}
	return "";
}

/* A host named twice, and names that no guest or socket can have. */
TEST(Plan, Names)
{
	EXPECT_EQ(error_of("[[host]]\nname = 'x'\n[[host]]\nname = 'x'\n"),
	          "net.toml:4: host.name: there is a \"x\" already");
	EXPECT_EQ(error_of("[[switch]]\nname = 'x'\n[[host]]\nname = 'x'\n"),
	          "net.toml:4: host.name: there is a \"x\" already");
	for (const char *name : {"../x", "a b", "7", "-a", "a.2", "a*"})
		EXPECT_NE(error_of("[[host]]\nname = '" + std::string(name) + "'\n")
		                  .find("net.toml:2: host.name: must be a letter"),
		          std::string::npos)
		        << name;
	EXPECT_EQ(error_of("[[host]]\nname = 'all'\n"),
	          "net.toml:2: host.name: \"all\" means every host");
	EXPECT_EQ(error_of("[[switch]]\nname = 'all'\n"), "net.toml:1: host: is missing");
	EXPECT_EQ(error_of("[[host]]\nname = 'x'\ncards = 8\ncount = 9\n"),
	          "net.toml:4: host.count: makes more than 64 cards");
}

TEST(Plan, AHostHasUpToEightCards)
{
	const auto with = [](unsigned cards) {
		return "switch = [{ name = 'tor' }]\nhost = [{ name = 'a' },\n"
		       "        { name = 'b', cards = " +
		       std::to_string(cards) + " }]\nlink = [{ ends = ['[ab]*', 'tor'] }]\n";
	};
	const Plan plan = plan_of(with(8));
	ASSERT_EQ(plan.hosts.size(), 2u);
	EXPECT_EQ(plan.hosts[1].name, "b");
	EXPECT_EQ(plan.hosts[1].first, 1u);
	EXPECT_EQ(plan.hosts[1].cards, 8u);
	EXPECT_EQ(plan.cards, (std::vector<std::string>{"a", "b.1", "b.2", "b.3", "b.4", "b.5",
	                                                "b.6", "b.7", "b.8"}));
	EXPECT_EQ(plan.links.size(), 9u);
	EXPECT_EQ(error_of(with(9)), "net.toml:3: host.cards: must be a whole number from 1 to 8");
}

} // namespace
} // namespace tern::fabric
