// SPDX-License-Identifier: GPL-2.0-or-later
/* The simulator is trusted by all that runs in it, so it has tests of its own. */
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "qemu/fabric/event_loop.h"
#include "tests/sim/link.h"
#include "tests/sim/node.h"
#include "tests/sim/rng.h"

namespace tern::sim {
namespace {

using Frame = Link::Frame;

std::vector<Frame> frames(size_t n)
{
	std::vector<Frame> all;
	for (size_t i = 0; i < n; i++)
		all.emplace_back(64, static_cast<std::byte>(i));
	return all;
}

struct OneLink {
	explicit OneLink(const LinkConfig &config, uint64_t seed = 1)
	        : link(loop, Rng(seed), config, [this](const Frame &f, const Link::Loan &loan) {
		          arrived.push_back(f);
		          loans.push_back(loan);
		          times.push_back(loop.now());
	          })
	{
	}

	void send_all(const std::vector<Frame> &all)
	{
		for (const Frame &f : all)
			link.send(f);
		while (loop.step()) {
		}
	}

	EventLoop loop;
	Link link;
	std::vector<Frame> arrived;
	std::vector<Link::Loan> loans;
	std::vector<uint64_t> times;
};

constexpr HostRange kRange{0x1000, 256};

void lend(OneLink &l, size_t n)
{
	for (const Frame &head : frames(n))
		EXPECT_EQ(l.link.lend(head, std::span(&kRange, 1), 0, {}), Wire::Lend::Done);
}

class Loops : public testing::TestWithParam<EventLoop::Events> {
protected:
	EventLoop loop_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Events, Loops,
                         testing::Values(EventLoop::Events::Few, EventLoop::Events::Many));

TEST_P(Loops, OrderOfTimeThenOfScheduling)
{
	std::vector<int> seen;
	loop_.at(20, [&] { seen.push_back(3); });
	loop_.at(10, [&] { seen.push_back(1); });
	loop_.at(10, [&] { seen.push_back(2); });
	while (loop_.step()) {
	}
	EXPECT_EQ(seen, (std::vector{1, 2, 3}));
	EXPECT_EQ(loop_.now(), 20u);
}

/* The first two are beyond the wheel's span when they are scheduled, the third one is within. */
TEST_P(Loops, OrderOfSchedulingWheneverTheTimeComesNear)
{
	constexpr uint64_t kThen = 3 * TimingWheel::kSpan;
	std::vector<int> seen;
	loop_.at(kThen, [&] { seen.push_back(1); });
	loop_.at(kThen, [&] { seen.push_back(2); });
	loop_.run_before(kThen - TimingWheel::kSpan + 1);
	loop_.at(kThen, [&] { seen.push_back(3); });
	EXPECT_TRUE(seen.empty());
	EXPECT_EQ(loop_.next(), kThen);
	loop_.run_for(TimingWheel::kSpan);
	EXPECT_EQ(seen, (std::vector{1, 2, 3}));
}

TEST_P(Loops, WhatIsPastHappensNow)
{
	uint64_t when = 0;
	loop_.at(100, [&] { loop_.at(5, [&] { when = loop_.now(); }); });
	while (loop_.step()) {
	}
	EXPECT_EQ(when, 100u);
}

TEST_P(Loops, StopsAtTheLimit)
{
	bool ran = false;
	loop_.at(100, [&] { ran = true; });
	EXPECT_FALSE(loop_.run_until(99, [&] { return ran; }));
	EXPECT_FALSE(ran);
	EXPECT_TRUE(loop_.run_until(100, [&] { return ran; }));
}

/* Runs random events, each of which schedules up to two others: at the same time, near or far in
 * the future. Returns time and number of each event in the order in which they ran. */
std::vector<std::pair<uint64_t, uint64_t>> random_history(EventLoop::Events events, uint64_t seed)
{
	constexpr uint64_t kEvents = 20'000;
	constexpr uint64_t kReach[] = {1, 64, 100, TimingWheel::kSpan, 5 * TimingWheel::kSpan};
	EventLoop loop(events);
	Rng rng(seed);
	std::vector<std::pair<uint64_t, uint64_t>> history;
	uint64_t scheduled = 0;
	std::function<void()> schedule = [&] {
		if (scheduled == kEvents)
			return;
		loop.after(rng.below(kReach[rng.below(std::size(kReach))]),
		           [&, number = scheduled++] {
			           history.emplace_back(loop.now(), number);
			           for (uint64_t i = rng.below(3); i > 0; i--)
				           schedule();
		           });
	};
	while (scheduled < kEvents) {
		schedule();
		loop.run_for(rng.below(100));
	}
	while (loop.step()) {
	}
	return history;
}

TEST(EventLoop, TheWheelChangesNoOrder)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		const auto history = random_history(EventLoop::Events::Few, seed);
		EXPECT_EQ(history.size(), 20'000u);
		EXPECT_TRUE(std::ranges::is_sorted(history, {}, [](auto &e) { return e.first; }));
		EXPECT_EQ(random_history(EventLoop::Events::Many, seed), history) << seed;
	}
}

TEST(Rng, SameSeedSameNumbers)
{
	Rng a(7), b(7), c(8);
	EXPECT_EQ(a.next(), b.next());
	EXPECT_NE(a.next(), c.next());
}

TEST(Link, LatencyAndBandwidth)
{
	OneLink l({.latency = 1000, .ns_per_kib = 1024});
	l.send_all(frames(2));
	/* 64 bytes take 64 ns each, one after the other, then the way. */
	EXPECT_EQ(l.times, (std::vector<uint64_t>{1064, 1128}));
}

TEST(Link, RefusesWhenFullAndTellsWhenNot)
{
	OneLink l({.latency = 1000, .ns_per_kib = 1024, .queue = 2});
	int room = 0;
	l.link.on_room = [&] { room++; };
	const auto f = frames(3);
	EXPECT_TRUE(l.link.send(f[0]));
	EXPECT_TRUE(l.link.send(f[1]));
	EXPECT_FALSE(l.link.send(f[2]));
	l.loop.step();
	EXPECT_EQ(room, 1);
	EXPECT_TRUE(l.link.send(f[2]));
	while (l.loop.step()) {
	}
	/* Nothing was refused since, so nobody waits to hear of it. */
	EXPECT_EQ(room, 1);
	EXPECT_EQ(l.arrived, f);
}

TEST(Link, LosesAboutAsManyAsTold)
{
	OneLink l({.ns_per_kib = 0, .queue = 10000, .faults = {.loss = 200}});
	l.send_all(frames(5000));
	EXPECT_EQ(l.arrived.size() + l.link.counts().lost, 5000u);
	EXPECT_NEAR(static_cast<double>(l.link.counts().lost), 1000, 150);
}

TEST(Link, DuplicatesAreEqual)
{
	OneLink l({.ns_per_kib = 0, .faults = {.duplicate = 1000}});
	l.send_all(frames(3));
	ASSERT_EQ(l.arrived.size(), 6u);
	for (size_t i = 0; i < 6; i += 2)
		EXPECT_EQ(l.arrived[i], l.arrived[i + 1]);
}

TEST(Link, CorruptionFlipsOneBit)
{
	OneLink l({.ns_per_kib = 0, .faults = {.corrupt = 1000}});
	const auto f = frames(1);
	l.send_all(f);
	int bits = 0;
	for (size_t i = 0; i < f[0].size(); i++)
		bits += __builtin_popcount(static_cast<unsigned>(f[0][i] ^ l.arrived[0][i]));
	EXPECT_EQ(bits, 1);
}

TEST(Link, ReordersSome)
{
	OneLink l({.ns_per_kib = 0, .queue = 100, .faults = {.reorder = 500}});
	const auto f = frames(100);
	l.send_all(f);
	EXPECT_EQ(l.arrived.size(), 100u);
	EXPECT_NE(l.arrived, f);
}

TEST(Link, SameSeedSameFate)
{
	const LinkConfig config{
	        .faults = {.loss = 100, .duplicate = 100, .corrupt = 100, .reorder = 100}};
	OneLink a(config, 5), b(config, 5);
	a.send_all(frames(60));
	b.send_all(frames(60));
	EXPECT_EQ(a.arrived, b.arrived);
	EXPECT_EQ(a.times, b.times);
}

TEST(Link, CarriesLoans)
{
	OneLink l({.latency = 1000, .ns_per_kib = 1024, .queue = 2, .borrow = 1000});
	lend(l, 2);
	EXPECT_EQ(l.link.lend(frames(1)[0], std::span(&kRange, 1), 0, {}), Wire::Lend::Full);
	l.send_all({});
	/* The bandwidth is that of all bytes. */
	EXPECT_EQ(l.times, (std::vector<uint64_t>{1320, 1640}));
	EXPECT_EQ(l.arrived, frames(2));
	ASSERT_EQ(l.loans.size(), 2u);
	ASSERT_EQ(l.loans[0].payload.size(), 1u);
	EXPECT_EQ(l.loans[0].payload[0].iova, kRange.iova);
	EXPECT_EQ(l.loans[0].payload[0].size, kRange.size);
}

TEST(Link, BorrowsAsOftenAsTold)
{
	OneLink l({.ns_per_kib = 0, .queue = 10000, .borrow = 300});
	unsigned done = 0;
	for (int i = 0; i < 5000; i++)
		done += l.link.lend(frames(1)[0], std::span(&kRange, 1), 0, {}) == Wire::Lend::Done;
	EXPECT_NEAR(done, 1500, 150);
	OneLink never({});
	EXPECT_EQ(never.link.lend(frames(1)[0], std::span(&kRange, 1), 0, {}), Wire::Lend::Refused);
}

TEST(Link, TakesBurstsAsOftenAsTold)
{
	OneLink l({.ns_per_kib = 0, .queue = 10000, .borrow = 1000, .bursts = 300});
	unsigned done = 0;
	for (int i = 0; i < 5000; i++)
		done += l.link.lend(frames(1)[0], std::span(&kRange, 1), 64, {}) ==
		        Wire::Lend::Done;
	EXPECT_NEAR(done, 1500, 150);
	l.send_all({});
	EXPECT_EQ(l.loans[0].segment, 64u);
	OneLink never({.borrow = 1000});
	EXPECT_EQ(never.link.lend(frames(1)[0], std::span(&kRange, 1), 64, {}),
	          Wire::Lend::Refused);
}

TEST(Link, RecallLosesWhatIsOutAndNothingElse)
{
	OneLink l({.borrow = 1000});
	lend(l, 3);
	l.link.send(frames(1)[0]);
	/* Nor what is all in the frame. */
	EXPECT_EQ(l.link.lend(frames(1)[0], {}, 0, {}), Wire::Lend::Done);
	EXPECT_EQ(l.link.recall(Recall::everything(), {}), 3u);
	lend(l, 1);
	l.send_all({});
	ASSERT_EQ(l.arrived.size(), 3u);
	EXPECT_FALSE(l.loans[0].lent);
	EXPECT_TRUE(l.loans[1].payload.empty());
	EXPECT_EQ(l.loans[2].payload.size(), 1u);
	EXPECT_EQ(l.link.counts().lost, 3u);
}

TEST(Link, RecallByKeyMovesWhatIsOut)
{
	OneLink l({.borrow = 1000, .moves = 1000});
	tern::Loan of{7, {}};
	of.keys.add(0x100);
	const HostRange ranges[] = {kRange, {0x9000, 10}};
	EXPECT_EQ(l.link.lend(frames(1)[0], ranges, 0, of), Wire::Lend::Done);
	lend(l, 1);
	const auto read = [](const HostRange &range) {
		return std::vector<std::byte>(range.size, static_cast<std::byte>(range.size));
	};
	EXPECT_EQ(l.link.recall(Recall::of_key(0x100), read), 0u);
	l.send_all({});
	ASSERT_EQ(l.loans.size(), 2u);
	EXPECT_EQ(l.loans[0].moved.size(), 266u);
	EXPECT_EQ(l.loans[0].moved[265], std::byte{10});
	EXPECT_TRUE(l.loans[0].payload.empty());
	EXPECT_EQ(l.loans[1].payload.size(), 1u);

	OneLink full({.borrow = 1000, .moves = 0});
	EXPECT_EQ(full.link.lend(frames(1)[0], ranges, 0, of), Wire::Lend::Done);
	EXPECT_EQ(full.link.recall(Recall::of_key(0x100), read), 1u);
	full.send_all({});
	EXPECT_TRUE(full.arrived.empty());
	EXPECT_TRUE(full.link.idle());
}

/* Its end comes between sending and arrival, and before the next. */
TEST(Link, EndOfBorrowing)
{
	OneLink l({.latency = 1000, .borrow = 1000, .borrow_until = 500});
	lend(l, 1);
	l.send_all({});
	EXPECT_TRUE(l.arrived.empty());
	EXPECT_EQ(l.link.lend(frames(1)[0], std::span(&kRange, 1), 0, {}), Wire::Lend::Refused);
}

TEST(Link, CorruptLoansAreLost)
{
	OneLink l({.faults = {.corrupt = 1000}, .borrow = 1000});
	lend(l, 3);
	l.send_all({});
	EXPECT_TRUE(l.arrived.empty());
}

/* A connection of two cards, with one page list of each kind. */
TEST(Node, TwoCardsExchangeAMessage)
{
	Fabric fabric(1, 2, {});
	struct Side {
		std::unique_ptr<test::HostCq> cq;
		std::unique_ptr<test::HostQp> qp;
		std::optional<test::HostMr> mr;
	} side[2];
	for (int i = 0; i < 2; i++) {
		test::Driver &d = fabric.nodes[i]->driver;
		auto eq = d.create_eq(0);
		const uint32_t pd = d.alloc_pd();
		side[i].cq = d.create_cq(eq, 6);
		side[i].mr = d.create_mr(pd, 0x10000123, 70000, test::kAllAccess, {2, 12});
		side[i].qp = d.create_qp({.pd = pd,
		                          .send_cqn = side[i].cq->number,
		                          .recv_cqn = side[i].cq->number,
		                          .layout = {1, 12}});
	}
	for (int i = 0; i < 2; i++)
		side[i].qp->connect({.dest_qpn = side[!i].qp->number,
		                     .dgid = fabric.nodes[!i]->gids[0].gid,
		                     .dmac = fabric.nodes[!i]->mac});
	std::vector<std::byte> data(60000);
	Rng(3).fill(data);
	side[0].mr->write(77, data);
	side[1].qp->post_recv(side[1].mr->sge(5, 65000));
	side[0].qp->post_send({.opcode = hw::TERN_OP_SEND, .sges = {side[0].mr->sge(77, 60000)}});
	fabric.nodes[0]->wake();
	fabric.loop.run_for(10'000'000);

	const auto sent = side[0].cq->drain();
	const auto received = side[1].cq->drain();
	ASSERT_EQ(sent.size(), 1u);
	EXPECT_EQ(sent[0].status, hw::TERN_WC_SUCCESS);
	ASSERT_EQ(received.size(), 1u);
	EXPECT_EQ(received[0].status, hw::TERN_WC_SUCCESS);
	EXPECT_EQ(received[0].byte_len.get(), 60000u);
	EXPECT_EQ(side[1].mr->read(5, 60000), data);
}

} // namespace
} // namespace tern::sim
