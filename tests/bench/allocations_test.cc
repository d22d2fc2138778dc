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

/* A host that binds a window behind a SEND that is never answered, and reuses the blocks of its
 * ring though nothing has completed. */
class LocalOperations : public ::testing::TestWithParam<uint8_t> {};

TEST_P(LocalOperations, BehindAnUnansweredSend)
{
	constexpr unsigned kLogRing = 10;
	constexpr uint32_t kPosts = 10'000'000;
	TwoCards two(1 << 20, kLogRing, 12, 0);
	auto near = two.a.make_qp(kLogRing);
	auto far = two.b.make_qp(kLogRing);
	connect(two.a, *near, two.b, *far);
	near->post_send({.opcode = TERN_OP_SEND, .sges = {two.from.sge(0, 8)}});
	test::SendRequest bind{.opcode = TERN_OP_BIND_MW, .flags = GetParam()};
	bind.bind.emplace();
	bind.bind->rkey = two.a.driver.alloc_mw(two.a.pd, TERN_MW_TYPE_1, 1);
	const auto block = test::encode(bind);
	for (uint32_t i = 1; i < 1u << kLogRing; i++)
		near->post_blocks(block, false);
	const auto work = [&] {
		near->publish();
		while (two.a.card.run(256)) {
		}
	};
	work();
	near->buffer.write(0, block); /* in place of the SEND */
	const uint64_t before = allocations();
	for (uint32_t posted = 0; posted < kPosts; posted += 512) {
		near->sq_pi += 512;
		work();
	}
	EXPECT_EQ(allocations(), before);
}

INSTANTIATE_TEST_SUITE_P(All, LocalOperations, ::testing::Values(0, TERN_WQE_SIGNALED),
                         [](const auto &info) { return info.param ? "Signaled" : "Silent"; });

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
