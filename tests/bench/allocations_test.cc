// SPDX-License-Identifier: GPL-2.0-or-later
/* No memory is allocated for a packet or a request: when traffic has gone on for a while, none at
 * all. */
#include <gtest/gtest.h>

#include "tests/bench/counted_new.h"
#include "tests/bench/two_cards.h"

namespace tern::bench {
namespace {

using namespace hw;

constexpr unsigned kLogDepth = 4;

struct Case {
	const char *name;
	Job job;
	bool whole = false;
};

class Allocations : public ::testing::TestWithParam<Case> {};

TEST_P(Allocations, NoneInSteadyTraffic)
{
	TwoCards two(1 << 20, kLogDepth, 12, 3);
	two.a.borrows = two.b.borrows = !GetParam().whole;
	two.prepare(GetParam().job);
	const auto round = [&] {
		for (uint32_t qp = 0; qp < 3; qp++)
			two.perform(qp, 1 << kLogDepth);
		/* Timers go off and are set anew. */
		two.a.time += 1'000'000'000;
		two.b.time += 1'000'000'000;
	};
	for (int i = 0; i < 20; i++)
		round();
	const uint64_t before = allocations();
	EXPECT_GT(before, 0u);
	for (int i = 0; i < 100; i++)
		round();
	EXPECT_EQ(allocations(), before);
}

constexpr uint32_t kLong = 64 << 10;

INSTANTIATE_TEST_SUITE_P(
        All, Allocations,
        ::testing::Values(
                Case{"WriteInline", {.flags = TERN_WQE_SIGNALED | TERN_WQE_INLINE}},
                Case{"Write", {.size = kLong, .slots = 16}},
                Case{"WriteWhole", {.size = kLong, .slots = 16}, true},
                Case{"Send", {.opcode = TERN_OP_SEND, .size = kLong, .slots = 16}},
                Case{"Read", {.opcode = TERN_OP_READ, .size = kLong, .slots = 16}},
                Case{"ReadWhole", {.opcode = TERN_OP_READ, .size = kLong, .slots = 16}, true},
                Case{"FetchAdd", {.opcode = TERN_OP_FETCH_ADD, .size = 8}}),
        [](const auto &info) { return info.param.name; });

} // namespace
} // namespace tern::bench
