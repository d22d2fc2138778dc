// SPDX-License-Identifier: GPL-2.0-or-later
/* No memory is allocated for a packet or a request: when traffic has gone on for a while, none at
 * all. And what a process can have allocated is bounded. */
#include <gtest/gtest.h>
#include <utility>

#include "qemu/rnic/limits.h"
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

/* One process, and half of the card's PDs, CQs, and regions or windows: its share.
 * docs/hardware.md, Shares, states the bounds. */
TEST(Memory, OfAProcessThatTakesItsShare)
{
	constexpr uint32_t kProcess = 1;
	constexpr int64_t kBound = int64_t{kMaxPds / 2} * 64 + int64_t{kMaxCqs / 2} * 256 +
	                           int64_t{kMaxRegions / 2} * 256;
	Host host{1};
	const uint32_t eqn = host.driver.create_eq(1).number;
	auto pd = test::make_command(TERN_AQ_ALLOC_PD);
	pd.object.id = kProcess;
	auto cq = test::make_command(TERN_AQ_CREATE_CQ);
	cq.create_cq.eqn = eqn;
	cq.create_cq.db_page = kProcess;
	auto window = test::make_command(TERN_AQ_ALLOC_MW);
	window.alloc_mw.pdn = host.driver.command(pd).created.id;
	window.alloc_mw.type = static_cast<uint8_t>(TERN_MW_TYPE_2);
	const int64_t before = allocated_bytes();
	for (const auto &[command, capacity] :
	     {std::pair(pd, kMaxPds), std::pair(cq, kMaxCqs), std::pair(window, kMaxRegions)}) {
		uint32_t made = 0;
		while (host.driver.status_of(command) == TERN_AQ_OK)
			made++;
		EXPECT_NEAR(made, capacity / 2, 8);
	}
	EXPECT_LE(allocated_bytes() - before, kBound);
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
