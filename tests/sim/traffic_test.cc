// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/traffic.h"

#include <gtest/gtest.h>

#include "tests/sim/options.h"

namespace tern::sim {
namespace {

void run_seeds(Disruption disruption)
{
	for (uint64_t i = 0; i < options().seeds; i++) {
		const uint64_t seed = options().seed + i;
		Traffic traffic(seed);
		ASSERT_EQ(traffic.run(disruption), "") << replay(seed);
		/* A reset clears the card's counters. */
		if (disruption != Disruption::ResetCard) {
			ASSERT_EQ(traffic.fabric().imbalance(), "") << replay(seed);
		}
	}
}

/* Lost, repeated, late and damaged frames change nothing that a program can see. */
TEST(Traffic, Faults)
{
	run_seeds(Disruption::None);
}

/* A card that is reset under load: its peers' work ends with errors, in order, and all works anew.
 */
TEST(Traffic, ResetCard)
{
	run_seeds(Disruption::ResetCard);
}

/* A QP that is destroyed under load harms its peer and nobody else. */
TEST(Traffic, DestroyQp)
{
	run_seeds(Disruption::DestroyQp);
}

/* A region that goes while it is in use: an error on this connection, as the key no longer means
 * anything. */
TEST(Traffic, DeregisterMr)
{
	run_seeds(Disruption::DeregisterMr);
}

/* A QP put into the error state under load: everything posted is flushed, in order. */
TEST(Traffic, QpToError)
{
	run_seeds(Disruption::QpToError);
}

/* The regions on demand among those of the tests above do come on demand. */
TEST(Traffic, PageFaults)
{
	uint64_t faults = 0;
	for (uint64_t i = 0; i < options().seeds; i++) {
		const uint64_t seed = options().seed + i;
		Traffic traffic(seed);
		EXPECT_EQ(traffic.run(Disruption::None), "") << replay(seed);
		for (const auto &node : traffic.fabric().nodes)
			faults += node->driver.stat(hw::TERN_STAT_PAGE_FAULTS);
	}
	EXPECT_GT(faults, 5 * options().seeds);
}

/* The same seed gives the same run, or no failure could be replayed. */
TEST(Traffic, Deterministic)
{
	const auto trace = [](uint64_t seed) {
		Traffic traffic(seed);
		EXPECT_EQ(traffic.run(Disruption::None), "") << replay(seed);
		std::vector<uint64_t> counts{traffic.fabric().loop.now()};
		for (const auto &node : traffic.fabric().nodes) {
			const auto &c = node->uplink.counts();
			counts.insert(counts.end(), {c.sent, c.delivered, c.refused, c.lost});
			counts.insert(counts.end(), {node->memory.reads(), node->memory.writes()});
		}
		return counts;
	};
	for (uint64_t i = 0; i < options().seeds; i++)
		EXPECT_EQ(trace(options().seed + i), trace(options().seed + i));
}

} // namespace
} // namespace tern::sim
