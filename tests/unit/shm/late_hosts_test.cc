// SPDX-License-Identifier: GPL-2.0-or-later
/* Hosts that do not release lent payload when it is wanted back. */
#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/unit/shm/shared_wire_fixture.h"

namespace tern::shm {
namespace {

class LateHosts : public SharedWireTest {
protected:
	Wire::Lend lend(uint8_t to)
	{
		const RamRange range{0, 10, 0};
		return nodes[0].wire.lend(frame(to, 1), std::span(&range, 1), 0, {});
	}
	/* Calls @f while hosts @first and later keep claims on payload that host 0 lent. */
	void hold(unsigned first, const std::function<void()> &f)
	{
		if (first == nodes.size())
			return f();
		EXPECT_EQ(lend(static_cast<uint8_t>(first + 1)), Wire::Lend::Done);
		nodes[first].during_loan = [&, first] { hold(first + 1, f); };
		nodes[first].receive();
		nodes[first].during_loan = nullptr;
	}
	/* @qpn: the sender's; its payload is what host 0 has at @offset. */
	Wire::Lend lend_of(uint32_t qpn, uint8_t to, uint32_t offset = 0, uint32_t key = 0)
	{
		Loan loan{.qpn = qpn};
		if (key)
			loan.keys.add(key);
		const RamRange range{0, 10, offset};
		return nodes[0].wire.lend(frame(to, 1), std::span(&range, 1), 0, loan);
	}
	/* Host 1 receives all that is there, and is late with the first loan: meanwhile @f. */
	void late_once(const std::function<void()> &f)
	{
		bool late = false;
		nodes[1].during_loan = [&] {
			if (!std::exchange(late, true))
				f();
		};
		while (nodes[1].wire.has_frames())
			nodes[1].receive_some(8);
		nodes[1].during_loan = nullptr;
		EXPECT_TRUE(late);
	}
	/* How long host 0 waits until it has everything back. */
	std::chrono::nanoseconds recall()
	{
		const auto begin = std::chrono::steady_clock::now();
		nodes[0].wire.recall(Recall::everything());
		return std::chrono::steady_clock::now() - begin;
	}
	void maintain(uint64_t now)
	{
		nodes[0].now = now;
		nodes[0].receive();
		settle();
	}
};

using namespace std::chrono_literals;

TEST_F(LateHosts, ManyTakeTheTimeOfOne)
{
	connect_hosts(6);
	hold(1, [&] { EXPECT_LT(recall(), 1200ms); });
	for (uint8_t to = 2; to <= 6; to++)
		EXPECT_EQ(lend(to), Wire::Lend::Refused);
}

/* As when they crash, or pretend to. */
TEST_F(LateHosts, ManyThatLeaveTakeTheTimeOfOne)
{
	connect_hosts(6);
	hold(1, [&] {
		server.reset();
		const auto begin = std::chrono::steady_clock::now();
		nodes[0].receive();
		EXPECT_LT(std::chrono::steady_clock::now() - begin, 1200ms);
	});
	EXPECT_FALSE(nodes[0].wire.up());
}

TEST_F(LateHosts, WhoLeavesAndJoinsAgainIsNotTrustedEarlier)
{
	connect_hosts(3);
	uint64_t now = kSecond;
	maintain(now);
	for (const uint64_t wait : {1, 2}) {
		SCOPED_TRACE(wait);
		EXPECT_EQ(lend(3), Wire::Lend::Done);
		nodes[2].during_loan = [&] { recall(); };
		nodes[2].receive();
		nodes.pop_back();
		step();
		ASSERT_EQ(connect(nodes.emplace_back(path)), "");
		nodes[2].wire.send(frame(kBroadcast, 3));
		maintain(now);
		maintain(now + wait * kSecond - 1);
		EXPECT_EQ(lend(3), Wire::Lend::Refused);
		EXPECT_EQ(lend(2), Wire::Lend::Refused) << "it could be that one";
		EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), {}, 0, {}), Wire::Lend::Done);
		now += wait * kSecond;
		maintain(now);
		EXPECT_EQ(lend(3), Wire::Lend::Done);
		EXPECT_EQ(lend(2), Wire::Lend::Done);
		settle();
		EXPECT_EQ(nodes[0].wire.next_deadline(), std::nullopt);
	}
}

/* The embedder lets go of what others need. */
TEST_F(LateHosts, TellsBeforeItWaits)
{
	connect_hosts(2);
	unsigned told = 0;
	const auto tell = [&] { told++; };
	EXPECT_EQ(lend(2), Wire::Lend::Done);
	nodes[0].wire.recall(Recall::everything(), tell);
	EXPECT_EQ(told, 0u) << "nobody reads it";
	nodes[1].receive();
	hold(1, [&] { nodes[0].wire.recall(Recall::everything(), tell); });
	EXPECT_EQ(told, 1u);
}

TEST_F(LateHosts, WhoKeepsALoanTooLongIsCutOff)
{
	connect_hosts(2);
	const RamRange range{0, 10, 0};
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0, {}), Wire::Lend::Done);
	nodes[1].during_loan = [&] { nodes[0].wire.recall(Recall::everything()); };
	nodes[1].receive();
	/* From then on through the switch, both ways. */
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0, {}),
	          Wire::Lend::Refused);
	nodes[1].receive();
	EXPECT_EQ(nodes[1].wire.lend(frame(1, 2), std::span(&range, 1), 0, {}),
	          Wire::Lend::Refused);
	nodes[0].wire.send(frame(2, 1, 6));
	nodes[1].wire.send(frame(1, 2, 7));
	settle();
	EXPECT_EQ(nodes[1].tags(), Tags{6});
	EXPECT_EQ(nodes[0].tags(), Tags{7});
}

/* What lies behind the entry that the late host has claimed: nobody would ask for it again, as the
 * link goes. */
TEST_F(LateHosts, WhatIsNotClaimedIsRevoked)
{
	connect_hosts(2);
	EXPECT_EQ(lend_of(7, 2), Wire::Lend::Done);
	EXPECT_EQ(lend_of(8, 2), Wire::Lend::Done);
	late_once([&] {
		EXPECT_EQ(nodes[0].wire.recall(Recall::of_qp(7)), 1u);
		nodes[0].receive();
		std::ranges::fill(nodes[0].ram.bytes(), std::byte{0xff});
	});
	EXPECT_EQ(nodes[1].loans.size(), 1u);
	EXPECT_EQ(nodes[1].lost, 1u);
	EXPECT_EQ(told("stats", "direct"), 2u);
	EXPECT_EQ(told("stats", "direct_received"), 1u);
	EXPECT_EQ(told("stats", "direct_lost"), 1u);
}

/* The slot of what was moved before is free when the link has gone. */
TEST_F(LateHosts, WhatWasMovedIsRevoked)
{
	constexpr uint32_t kKey = 0x1200, kOtherKey = 0x1300;
	connect_hosts(3);
	nodes[0].now = kSecond;
	EXPECT_EQ(lend_of(7, 2), Wire::Lend::Done);
	EXPECT_EQ(lend_of(8, 2, 0, kKey), Wire::Lend::Done);
	late_once([&] {
		EXPECT_EQ(nodes[0].wire.recall(Recall::of_key(kKey)), 0u);
		EXPECT_EQ(nodes[0].wire.recall(Recall::of_qp(7)), 1u);
		nodes[0].receive();
		nodes[0].now += kSecond;
		nodes[0].receive();
		nodes[0].ram.bytes()[100] = std::byte{0xff};
		EXPECT_EQ(lend_of(9, 3, 100, kOtherKey), Wire::Lend::Done);
		EXPECT_EQ(nodes[0].wire.recall(Recall::of_key(kOtherKey)), 0u);
	});
	EXPECT_EQ(nodes[1].loans.size(), 1u);
	EXPECT_EQ(nodes[1].lost, 1u);
	nodes[2].receive();
	ASSERT_EQ(nodes[2].loans.size(), 1u);
	EXPECT_EQ(nodes[2].loans[0].end()[-10], std::byte{0xff});
}

/* They may be those that keep it from going on. */
TEST_F(LateHosts, OthersAreWokenBeforeTheWait)
{
	connect_hosts(3);
	const RamRange range{0, 10, 0};
	nodes[0].wire.sleeps(5);
	EXPECT_EQ(nodes[2].wire.lend(frame(2, 3), std::span(&range, 1), 0, {}), Wire::Lend::Done);
	EXPECT_TRUE(nodes[2].wire.send(frame(1, 3, 7)));
	late_once([&] {
		nodes[2].wire.recall(Recall::everything());
		EXPECT_EQ(nodes[2].wire.announce(), std::nullopt) << "it has been woken";
	});
}

/* It may just have been stopped. */
TEST_F(LateHosts, WhoWasLateIsTrustedAgainLaterEachTime)
{
	connect_hosts(3);
	const RamRange range{0, 10, 0};
	const auto lend = [&](unsigned from, uint8_t to) {
		return nodes[from].wire.lend(frame(to, static_cast<uint8_t>(from + 1)),
		                             std::span(&range, 1), 0, {});
	};
	uint64_t now = kSecond;
	const auto maintain = [&](uint64_t until) {
		nodes[0].now = now = until;
		nodes[0].receive();
		settle();
	};
	for (const uint64_t wait : {1, 2, 4, 1}) {
		SCOPED_TRACE(wait);
		EXPECT_EQ(lend(0, 2), Wire::Lend::Done);
		nodes[1].during_loan = [&] { nodes[0].wire.recall(Recall::everything()); };
		nodes[1].receive();
		nodes[1].during_loan = nullptr;
		maintain(now);
		EXPECT_EQ(nodes[0].wire.next_deadline(), now + wait * kSecond);
		maintain(now + wait * kSecond - 1);
		EXPECT_EQ(lend(0, 2), Wire::Lend::Refused);
		EXPECT_EQ(lend(1, 1), Wire::Lend::Refused);
		maintain(now + 1);
		EXPECT_EQ(lend(0, 2), Wire::Lend::Done);
		EXPECT_EQ(lend(1, 1), Wire::Lend::Done);
		EXPECT_EQ(lend(0, 3), Wire::Lend::Done) << "as all the time";
		nodes[1].loans.clear();
		settle();
		EXPECT_EQ(nodes[1].loans.size(), 1u);
		/* What was due has come. */
		EXPECT_EQ(nodes[0].wire.next_deadline(), std::nullopt);
		/* Minutes without trouble are good for its name. */
		if (wait == 4)
			maintain(now + 3 * 64 * kSecond);
	}
}

/* The switch was busy, or there was no memory for rings. */
TEST_F(LateHosts, ARenewalThatDoesNotComeIsAskedForAgain)
{
	connect_hosts(2);
	const RamRange range{0, 10, 0};
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0, {}), Wire::Lend::Done);
	nodes[1].during_loan = [&] { nodes[0].wire.recall(Recall::everything()); };
	nodes[1].receive();
	uint64_t now = 1;
	nodes[0].wire.maintain(now);
	for (int i = 0; i < 9; i++) {
		now += kSecond;
		EXPECT_EQ(nodes[0].wire.next_deadline(), now);
		nodes[0].wire.maintain(now);
	}
	/* Of so many only one is granted. */
	nodes[0].now = now;
	settle();
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0, {}), Wire::Lend::Done);
	step(20);
	nodes[1].during_loan = nullptr;
	nodes[1].receive();
	EXPECT_EQ(nodes[1].loans.size(), 2u);
}

} // namespace
} // namespace tern::shm
