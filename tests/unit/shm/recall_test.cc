// SPDX-License-Identifier: GPL-2.0-or-later
/* What a host wants back of what it has lent: by key, where nothing is lost, by QP, or all. */
#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "tests/unit/shm/shared_wire_fixture.h"

namespace tern::shm {
namespace {

constexpr uint32_t kKey = 0x1200, kOtherKey = 0x1300;
constexpr uint32_t kSize = 1000;

Loan loan(uint32_t qpn, uint32_t key)
{
	Loan loan{qpn, {}};
	loan.keys.add(key);
	return loan;
}

class RecallTest : public SharedWireTest {
protected:
	RecallTest() { connect_hosts(2); }

	/* Lends kSize bytes from the @n-th KiB of host 0, which are @fill now. */
	void lend(uint32_t n, uint8_t fill, const Loan &loan, uint32_t segment = 0)
	{
		set(n, fill);
		const RamRange ranges[] = {{0, kSize - 1, n * 1024}, {0, 1, n * 1024 + kSize - 1}};
		EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), ranges, segment, loan), Wire::Lend::Done);
	}
	void set(uint32_t n, uint8_t fill)
	{
		std::ranges::fill(nodes[0].ram.bytes().subspan(n * 1024, kSize), std::byte{fill});
	}
	/* What host 1 has got: the byte of which each payload consists, or 0. */
	std::vector<unsigned> got()
	{
		nodes[1].receive();
		std::vector<unsigned> result;
		for (const Bytes &bytes : nodes[1].loans) {
			const auto payload = std::span(bytes).last(kSize);
			const bool equal = std::ranges::count(payload, payload[0]) == kSize;
			result.push_back(equal ? std::to_integer<unsigned>(payload[0]) : 0);
		}
		nodes[1].loans.clear();
		return result;
	}
	uint64_t recall(const Recall &what) { return nodes[0].wire.recall(what); }

	/* A host that the test plays: its end of the ring to host 1. */
	struct Stranger {
		bool lend()
		{
			const RamRange range{0, kSize, 0};
			const LentHeader header{1, 0, 0, 0};
			return out.lend({7, {}}, 1, std::as_bytes(std::span(&header, 1)),
			                std::as_bytes(std::span(&range, 1)));
		}

		Fd socket;
		Bell bell;
		Producer out;
	};
	/* Null if it fails. */
	std::unique_ptr<Stranger> join(bool has_ram)
	{
		auto host = std::make_unique<Stranger>();
		host->socket = stranger();
		const int ram[] = {nodes[0].ram_fd.get()};
		Message hello{.blocks = has_ram};
		hello.block_sizes[0] = has_ram ? kRamSize : 0;
		if (!send_message(host->socket, hello, std::span(ram).first(has_ram)))
			return nullptr;
		settle();
		Message message;
		std::vector<Fd> fds;
		do {
			if (receive_message(host->socket, message, fds) != Received::Message)
				return nullptr;
		} while (message.kind != Message::Kind::Peer || message.id != 1);
		host->bell = Bell(std::move(fds[1]));
		return host->out.open(fds[3], host->bell).empty() ? std::move(host) : nullptr;
	}

	using Fills = std::vector<unsigned>;
};

/* A real card has it in its packets already. */
TEST_F(RecallTest, WhatLiesInARegionIsMoved)
{
	lend(0, 1, loan(7, kKey));
	lend(1, 2, loan(8, kOtherKey));
	lend(2, 3, loan(8, kKey));
	EXPECT_EQ(recall(Recall::of_key(kKey | 5)), 0u);
	for (uint32_t n = 0; n < 3; n++)
		set(n, 9);
	EXPECT_EQ(got(), (Fills{1, 9, 3})) << "the other is where it was";
	EXPECT_EQ(nodes[1].lost, 0u);
}

TEST_F(RecallTest, EachIsMovedToASlotOfItsOwn)
{
	lend(0, 1, loan(7, kKey));
	recall(Recall::of_key(kKey));
	lend(0, 2, loan(7, kKey));
	recall(Recall::of_key(kKey));
	recall(Recall::of_qp(7));
	set(0, 9);
	EXPECT_EQ(got(), (Fills{1, 2}));
}

TEST_F(RecallTest, OnlyTheQpsOwnAreRevoked)
{
	lend(0, 1, loan(7, kKey));
	lend(1, 2, loan(8, kKey));
	lend(2, 3, loan(7, kOtherKey), 300);
	EXPECT_EQ(recall(Recall::of_qp(7)), 1u + 4) << "packets";
	EXPECT_EQ(recall(Recall::of_qp(7)), 0u);
	EXPECT_EQ(got(), Fills{2});
	EXPECT_EQ(nodes[1].lost, 1u + 4);
	EXPECT_EQ(told("stats", "direct"), 1u + 1 + 4);
	EXPECT_EQ(told("stats", "direct_received"), 1u);
	EXPECT_EQ(told("stats", "direct_lost"), 1u + 4);
}

TEST_F(RecallTest, WithoutASlotTheyAreRevoked)
{
	constexpr uint32_t kMore = 5;
	for (int round = 0; round < 3; round++) {
		nodes[1].lost = 0;
		for (uint32_t n = 0; n < Spill::kSlots + kMore; n++)
			lend(n, 1, loan(7, kKey));
		EXPECT_EQ(recall(Recall::of_key(kKey)), kMore);
		for (uint32_t n = 0; n < Spill::kSlots + kMore; n++)
			set(n, 9);
		EXPECT_EQ(got(), Fills(Spill::kSlots, 1)) << "then the slots are free";
		EXPECT_EQ(nodes[1].lost, kMore);
	}
}

TEST_F(RecallTest, SlotsOfALinkThatIsGoneAreFree)
{
	for (uint32_t n = 0; n < Spill::kSlots; n++)
		lend(n, 1, loan(7, kKey));
	EXPECT_EQ(recall(Recall::of_key(kKey)), 0u);
	nodes.pop_back();
	settle();
	EXPECT_EQ(connect(nodes.emplace_back(path)), "");
	nodes[1].wire.send(frame(kBroadcast, 2));
	settle();
	for (uint32_t n = 0; n < Spill::kSlots; n++)
		lend(n, 2, loan(7, kKey));
	EXPECT_EQ(recall(Recall::of_key(kKey)), 0u);
	EXPECT_EQ(got(), Fills(Spill::kSlots, 2));
	EXPECT_EQ(told("stats", "links_cut"), 1u);
}

TEST_F(RecallTest, WhatTheCardDiscardsIsCounted)
{
	lend(0, 1, loan(7, kKey), 300);
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 1)));
	recall(Recall::of_key(kKey));
	nodes[1].wire.discard_received();
	nodes[1].receive();
	EXPECT_EQ(told("stats", "direct_received"), 0u);
	EXPECT_EQ(told("stats", "direct_lost"), 5u);
	lend(0, 2, loan(7, kKey));
	EXPECT_EQ(got(), Fills{2});
}

/* It reads while the other wants it back: either from the old place, and the other waits, or from
 * the new one. */
TEST_F(RecallTest, RacesWithTheReader)
{
	constexpr uint32_t kRounds = 20'000;
	std::atomic<uint32_t> seen{0};
	std::thread reader([&] {
		while (seen < kRounds)
			for (const unsigned fill : got()) {
				EXPECT_EQ(fill, 1 + seen % 200);
				seen++;
			}
	});
	uint64_t revoked = 0;
	for (uint32_t i = 0; i < kRounds; i++) {
		while (i - seen > Spill::kSlots / 2)
			std::this_thread::yield();
		lend(i % 8, static_cast<uint8_t>(1 + i % 200), loan(7, (1 + i % 8) << 8));
		if (i % 8 != 7)
			continue;
		for (uint32_t n = 0; n < 8; n++) {
			revoked += recall(Recall::of_key((1 + n) << 8));
			set(n, 255);
		}
	}
	reader.join();
	EXPECT_EQ(revoked, 0u);
	EXPECT_EQ(nodes[1].lost, 0u);
}

/* A host that says it has moved payload to where it has no memory. */
TEST_F(RecallTest, LiesAboutThePlaceCutTheLink)
{
	const uint64_t places[] = {kRamSize - kSize + 1, kRamSize + 1, ~uint64_t{0}};
	for (const bool has_ram : {false, true}) {
		for (const uint64_t place : places) {
			SCOPED_TRACE(place);
			const auto host = join(has_ram);
			ASSERT_TRUE(host && host->lend());
			uint64_t revoked = 0;
			EXPECT_TRUE(host->out.take_back(
			        Recall::of_qp(7), [&](auto, auto) { return place; }, revoked));
			EXPECT_FALSE(host->out.closed());
			EXPECT_EQ(got(), Fills{});
			EXPECT_TRUE(host->out.closed());
		}
	}
}

/* The other host may use that memory for something else now. */
TEST_F(RecallTest, WhatAClosedLinkHasLentIsNotRead)
{
	const auto host = join(true);
	ASSERT_TRUE(host && host->lend());
	nodes[1].receive_some(8);
	EXPECT_EQ(nodes[1].loans.size(), 1u);
	ASSERT_TRUE(host->lend());
	host->out.close();
	nodes[1].receive_some(8);
	EXPECT_EQ(nodes[1].loans.size(), 1u);
	EXPECT_EQ(nodes[1].lost, 1u);
}

} // namespace
} // namespace tern::shm
