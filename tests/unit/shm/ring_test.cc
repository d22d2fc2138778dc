// SPDX-License-Identifier: GPL-2.0-or-later
#include <cstring>
#include <gtest/gtest.h>
#include <poll.h>
#include <random>
#include <thread>

#include "qemu/shm/ring.h"

namespace tern::shm {
namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kCapacity = 64 << 10;

class RingTest : public testing::Test {
protected:
	RingTest()
	{
		const Fd fd = RingEnd::make(kCapacity);
		EXPECT_EQ(out.open(fd, to_consumer), "");
		EXPECT_EQ(in.open(fd, to_producer), "");
		EXPECT_EQ(memory.map(fd, kRingHeaderSize + kCapacity, Mapping::Access::ReadWrite),
		          "");
	}

	static Bytes bytes(size_t size, uint32_t tag)
	{
		Bytes bytes(size);
		for (size_t i = 0; i < size; i++)
			bytes[i] = static_cast<std::byte>(tag + i);
		return bytes;
	}
	static bool rings(const Bell &bell)
	{
		uint64_t rings = 0;
		return read(bell.fd(), &rings, sizeof(rings)) == sizeof(rings);
	}
	std::optional<Consumer::Entry> take() { return in.take(room); }
	/* Takes back all, moving nothing. */
	bool revoke(Producer &producer)
	{
		return producer.take_back(
		        Recall::everything(),
		        [](auto, auto) -> std::optional<uint64_t> { return std::nullopt; },
		        revoked);
	}
	RingHeader &header() { return *reinterpret_cast<RingHeader *>(memory.bytes().data()); }
	EntryHeader &first()
	{
		return *reinterpret_cast<EntryHeader *>(memory.bytes().data() + kRingHeaderSize);
	}
	void fill()
	{
		while (out.put(kWhole, bytes(1000, 1)))
			;
	}

	Bell to_consumer = Bell::make(), to_producer = Bell::make();
	Producer out;
	Consumer in;
	Mapping memory;
	uint64_t revoked = 0;
	std::array<std::byte, kMaxEntry> room;
};

TEST_F(RingTest, CarriesEntriesOfAnySizeInOrder)
{
	for (uint32_t i = 0; i < 5000; i++) {
		const Bytes sent = bytes((i * 97) % (kMaxEntry + 1), i);
		const auto half = sent.size() / 2;
		ASSERT_TRUE(out.put(kWhole, std::span(sent).first(half),
		                    std::span(sent).subspan(half)));
		const auto got = take();
		ASSERT_TRUE(got);
		EXPECT_EQ(got->state, kWhole);
		ASSERT_TRUE(std::ranges::equal(got->bytes, sent));
		in.done();
		EXPECT_TRUE(in.empty());
		EXPECT_FALSE(take());
	}
	EXPECT_EQ(out.used(), 0u);
}

/* A consumer that works up to end() must come to an end, whatever the producer writes. */
TEST_F(RingTest, EndIsWithinTheRingWhateverTheProducerSays)
{
	ASSERT_TRUE(out.put(kWhole, bytes(60, 1)));
	EXPECT_EQ(in.end(), header().tail.load());
	ASSERT_TRUE(take());
	in.done();
	EXPECT_EQ(in.end(), in.position());
	for (const uint64_t tail : {in.position() + (uint64_t{1} << 40), in.position() - 1}) {
		header().tail = tail;
		EXPECT_EQ(in.end(), in.position() + kCapacity);
	}
}

TEST_F(RingTest, IsFullAndSaysWhenItHasRoom)
{
	fill();
	EXPECT_FALSE(out.broken());
	EXPECT_FALSE(out.has_room());
	EXPECT_FALSE(out.await_room());
	EXPECT_FALSE(rings(to_producer));
	while (!out.has_room()) {
		EXPECT_FALSE(rings(to_producer));
		ASSERT_TRUE(take());
		in.done();
	}
	EXPECT_TRUE(rings(to_producer));
	ASSERT_TRUE(take());
	in.done();
	EXPECT_FALSE(rings(to_producer)) << "once is enough";
	EXPECT_TRUE(out.put(kWhole, bytes(kMaxEntry, 0)));
}

TEST_F(RingTest, RingsOnlyForASleeper)
{
	ASSERT_TRUE(out.put(kWhole, bytes(60, 1)));
	EXPECT_EQ(out.announce(), std::nullopt);
	EXPECT_FALSE(rings(to_consumer));
	in.sleeps(3);
	ASSERT_TRUE(out.put(kWhole, bytes(60, 2)));
	EXPECT_EQ(out.announce(), 3u);
	EXPECT_TRUE(rings(to_consumer));
	ASSERT_TRUE(out.put(kWhole, bytes(60, 3)));
	EXPECT_EQ(out.announce(), std::nullopt);
	EXPECT_FALSE(rings(to_consumer));
	in.sleeps(3);
	in.awake();
	ASSERT_TRUE(out.put(kWhole, bytes(60, 4)));
	EXPECT_EQ(out.announce(), std::nullopt);
}

TEST_F(RingTest, RingsOnceForManyEntries)
{
	in.sleeps(0);
	for (uint32_t i = 0; i < 3; i++)
		ASSERT_TRUE(out.put(kWhole, bytes(60, i)));
	EXPECT_FALSE(rings(to_consumer));
	EXPECT_EQ(out.announce(), 0u);
	EXPECT_TRUE(rings(to_consumer));
	in.sleeps(0);
	EXPECT_EQ(out.announce(), std::nullopt) << "nothing is new";
	EXPECT_FALSE(rings(to_consumer));
}

/* A producer that waits for room wakes the consumer, which may sleep and not know of the entries.
 */
TEST_F(RingTest, WaitingForRoomRings)
{
	in.sleeps(0);
	fill();
	EXPECT_FALSE(out.await_room());
	EXPECT_TRUE(rings(to_consumer));
}

TEST_F(RingTest, WhatWasLentCanBeTakenBack)
{
	ASSERT_TRUE(out.lend({}, 1, bytes(40, 1)));
	ASSERT_TRUE(out.put(kWhole, bytes(50, 2)));
	ASSERT_TRUE(out.lend({}, 1, bytes(60, 3)));
	EXPECT_TRUE(revoke(out));
	EXPECT_EQ(take()->state, kRevoked);
	in.done();
	EXPECT_EQ(take()->state, kWhole);
	in.done();
	EXPECT_EQ(take()->state, kRevoked);
	in.done();
	EXPECT_FALSE(take());
	EXPECT_FALSE(in.broken() || out.broken());
}

TEST_F(RingTest, WhatIsClaimedHasToBeAwaited)
{
	ASSERT_TRUE(out.lend({}, 1, bytes(40, 1)));
	ASSERT_TRUE(out.lend({}, 1, bytes(40, 2)));
	ASSERT_EQ(take()->state, kLent);
	EXPECT_FALSE(revoke(out));
	EXPECT_FALSE(revoke(out));
	in.done();
	EXPECT_TRUE(revoke(out));
	EXPECT_EQ(take()->state, kRevoked);
	in.done();
	EXPECT_FALSE(out.broken());
}

/* A recall selects entries by QP or key. A moved entry has an offset, and no later recall of its QP
 * or key selects it. */
TEST_F(RingTest, OnlyWhatIsWantedIsTakenBack)
{
	LoanKeys keys;
	keys.add(0x1200);
	ASSERT_TRUE(out.lend({7, keys}, 3, bytes(40, 1)));
	ASSERT_TRUE(out.lend({8, keys}, 2, bytes(50, 2)));
	ASSERT_TRUE(out.lend({8, {}}, 1, bytes(60, 3)));
	std::vector<size_t> moved;
	const auto take_back = [&](const Recall &what, std::optional<uint64_t> offset) {
		return out.take_back(
		        what,
		        [&](std::span<const std::byte> entry, uint64_t) {
			        moved.push_back(entry.size());
			        return offset;
		        },
		        revoked);
	};
	EXPECT_TRUE(take_back(Recall::of_key(0x1300), 5));
	EXPECT_TRUE(take_back(Recall::of_qp(9), 5));
	EXPECT_TRUE(moved.empty());
	EXPECT_TRUE(take_back(Recall::of_qp(7), std::nullopt));
	EXPECT_EQ(revoked, 3u);
	EXPECT_TRUE(take_back(Recall::of_key(0x12ff), 0x10000)) << "of any variant";
	EXPECT_EQ(moved, (std::vector<size_t>{40, 50}));
	EXPECT_TRUE(take_back(Recall::of_key(0x1200), 0x20000));
	EXPECT_TRUE(take_back(Recall::of_qp(7), 0x20000));
	EXPECT_EQ(moved.size(), 2u) << "each once";

	EXPECT_EQ(take()->state, kRevoked);
	in.done();
	const auto got = take();
	EXPECT_EQ(got->state, kMoved);
	EXPECT_EQ(got->offset, 0x10000u);
	EXPECT_TRUE(std::ranges::equal(got->bytes, bytes(50, 2)));
	EXPECT_FALSE(revoke(out)) << "its place is in use";
	in.done();
	EXPECT_TRUE(revoke(out));
	EXPECT_EQ(take()->state, kRevoked);
	EXPECT_EQ(revoked, 4u);
}

TEST_F(RingTest, MovedEntriesCanBeRevoked)
{
	ASSERT_TRUE(out.lend({7, {}}, 1, bytes(40, 1)));
	EXPECT_TRUE(out.take_back(
	        Recall::of_qp(7), [](auto, auto) { return 0; }, revoked));
	EXPECT_EQ(revoked, 0u);
	EXPECT_TRUE(revoke(out));
	EXPECT_TRUE(revoke(out));
	EXPECT_EQ(revoked, 1u);
	EXPECT_EQ(take()->state, kRevoked);
}

/* The consumer is late with one entry, and claims the next just before the rest is revoked. */
TEST_F(RingTest, OnlyWhatWasWaitedForIsWrittenOff)
{
	for (const uint32_t qpn : {7, 8, 9})
		ASSERT_TRUE(out.lend({qpn, {}}, 1, bytes(40, 1)));
	EXPECT_EQ(take()->state, kLent);
	EXPECT_FALSE(revoke(out));
	EXPECT_EQ(revoked, 2u);
	out.write_off(Recall::of_qp(8));
	EXPECT_FALSE(revoke(out)) << "it has not been waited for";
	out.write_off(Recall::of_qp(7));
	EXPECT_TRUE(revoke(out));
	EXPECT_EQ(revoked, 2u);
	in.done();
	EXPECT_EQ(take()->state, kRevoked);
}

TEST(LoanKeys, MoreThanAFewAreAny)
{
	LoanKeys keys;
	for (uint32_t i = 1; i <= LoanKeys::kMax; i++) {
		EXPECT_FALSE(keys.has(i << 8));
		keys.add(i << 8);
		keys.add(i << 8 | 0xff);
		EXPECT_TRUE(keys.has(i << 8 | 1));
	}
	EXPECT_FALSE(keys.has(5)) << "is no key";
	EXPECT_FALSE(keys.has(0x9900));
	keys.add(0x500);
	EXPECT_TRUE(keys.has(0x9900));
}

TEST_F(RingTest, BetweenTwoThreads)
{
	constexpr uint32_t kEntries = 200'000;
	std::atomic<uint32_t> lent_now{0};
	/* Their place is their number. */
	const auto move_all = [&] {
		return out.take_back(
		        Recall::of_qp(1),
		        [](std::span<const std::byte> entry, uint64_t) {
			        uint32_t tag;
			        std::memcpy(&tag, entry.data(), sizeof(tag));
			        return std::optional<uint64_t>(tag);
		        },
		        revoked);
	};
	std::thread producer([&] {
		std::mt19937 random(1);
		for (uint32_t i = 0; i < kEntries;) {
			Bytes entry = bytes(5 + random() % 300, i);
			std::memcpy(entry.data(), &i, sizeof(i));
			if (i % 7 ? out.put(kWhole, entry) : out.lend({1, {}}, 1, entry)) {
				if (random() % 4 == 0 || i + 1 == kEntries)
					out.announce();
				if (++i % 500 == 0) {
					while (!(i % 1000 ? move_all() : revoke(out)))
						std::this_thread::yield();
					EXPECT_EQ(lent_now.load(), 0u) << "still read";
				}
				continue;
			}
			ASSERT_FALSE(out.broken());
			if (!out.await_room()) {
				pollfd fd{.fd = to_producer.fd(), .events = POLLIN, .revents = 0};
				ASSERT_EQ(poll(&fd, 1, 60'000), 1) << "nobody rang";
				EXPECT_TRUE(rings(to_producer));
			}
		}
	});
	uint32_t dropped = 0, moved = 0;
	for (uint32_t i = 0; i < kEntries;) {
		const auto got = take();
		if (got) {
			if (got->state == kRevoked) {
				EXPECT_EQ(i % 7, 0u);
				dropped++;
			} else {
				lent_now = got->state == kLent;
				uint32_t tag;
				std::memcpy(&tag, got->bytes.data(), sizeof(tag));
				EXPECT_EQ(tag, i);
				EXPECT_EQ(got->bytes.back(),
				          static_cast<std::byte>(i + got->bytes.size() - 1))
				        << got->bytes.size();
				lent_now = 0;
				if (got->state == kMoved) {
					EXPECT_EQ(got->offset, tag);
					moved++;
				}
			}
			in.done();
			i++;
			continue;
		}
		ASSERT_FALSE(in.broken());
		in.sleeps(0);
		std::atomic_thread_fence(std::memory_order_seq_cst);
		if (in.empty()) {
			pollfd fd{.fd = to_consumer.fd(), .events = POLLIN, .revents = 0};
			ASSERT_EQ(poll(&fd, 1, 60'000), 1) << "nobody rang";
			EXPECT_TRUE(rings(to_consumer));
		}
		in.awake();
	}
	producer.join();
	EXPECT_EQ(revoked, dropped);
	EXPECT_GT(dropped, 0u);
	EXPECT_GT(moved, 0u);
	EXPECT_LT(dropped + moved, kEntries / 7);
}

/* ---- the other side violates the protocol ---------------------------------------- */

TEST_F(RingTest, RefusesATailThatCannotBe)
{
	for (const uint64_t tail : {uint64_t{8}, uint64_t{kCapacity + 16}, ~uint64_t{15}}) {
		Consumer consumer;
		const Fd fd = RingEnd::make(kCapacity);
		ASSERT_EQ(consumer.open(fd, to_producer), "");
		Mapping liar;
		ASSERT_EQ(liar.map(fd, kRingHeaderSize, Mapping::Access::ReadWrite), "");
		reinterpret_cast<RingHeader *>(liar.bytes().data())->tail = tail;
		EXPECT_FALSE(consumer.empty());
		EXPECT_FALSE(consumer.take(room));
		EXPECT_TRUE(consumer.broken());
		EXPECT_TRUE(consumer.empty());
	}
}

TEST_F(RingTest, RefusesAHeadThatCannotBe)
{
	ASSERT_TRUE(out.put(kWhole, bytes(100, 1)));
	EXPECT_EQ(out.used(), 128u);
	header().head = 144;
	out.used();
	EXPECT_TRUE(out.broken());
	EXPECT_FALSE(out.put(kWhole, bytes(100, 1)));
}

TEST_F(RingTest, RefusesAHeadThatGoesBack)
{
	ASSERT_TRUE(out.put(kWhole, bytes(100, 1)));
	take();
	in.done();
	EXPECT_EQ(out.used(), 0u);
	header().head = 0;
	out.used();
	EXPECT_TRUE(out.broken());
}

TEST_F(RingTest, RefusesSizesBeyondWhatIsThere)
{
	for (const uint32_t size : {101u, uint32_t{kMaxEntry} + 1, ~0u}) {
		Producer producer;
		Consumer consumer;
		const Fd fd = RingEnd::make(kCapacity);
		ASSERT_EQ(producer.open(fd, to_consumer), "");
		ASSERT_EQ(consumer.open(fd, to_producer), "");
		ASSERT_TRUE(producer.put(kWhole, bytes(96, 1)));
		Mapping liar;
		ASSERT_EQ(liar.map(fd, kRingHeaderSize + 16, Mapping::Access::ReadWrite), "");
		reinterpret_cast<EntryHeader *>(liar.bytes().data() + kRingHeaderSize)->size = size;
		EXPECT_FALSE(consumer.take(room));
		EXPECT_TRUE(consumer.broken());
	}
}

TEST_F(RingTest, RefusesStatesThatAreNone)
{
	ASSERT_TRUE(out.put(kWhole, bytes(96, 1)));
	first().state = kClaimed;
	EXPECT_FALSE(take());
	EXPECT_TRUE(in.broken());
}

TEST_F(RingTest, ProducerNoticesStatesThatAreNone)
{
	ASSERT_TRUE(out.lend({}, 1, bytes(96, 1)));
	first().state = 77;
	EXPECT_TRUE(revoke(out));
	EXPECT_TRUE(out.broken());
}

TEST_F(RingTest, SurvivesGarbageAllOver)
{
	std::mt19937_64 random(7);
	for (int round = 0; round < 3000; round++) {
		const Fd fd = RingEnd::make(kCapacity);
		Producer producer;
		Consumer consumer;
		Mapping liar;
		ASSERT_EQ(producer.open(fd, to_consumer), "");
		ASSERT_EQ(consumer.open(fd, to_producer), "");
		ASSERT_EQ(liar.map(fd, kRingHeaderSize + 4096, Mapping::Access::ReadWrite), "");
		for (int i = 0; i < 20; i++)
			producer.lend({}, 1, bytes(random() % 300, 1));
		auto &header = *reinterpret_cast<RingHeader *>(liar.bytes().data());
		for (int i = 0; i < 20; i++) {
			const size_t at = kRingHeaderSize + random() % 512 * 8;
			const uint64_t value = random() % 2 ? random() : random() % 10;
			std::memcpy(liar.bytes().data() + at, &value, sizeof(value));
			if (random() % 8 == 0)
				header.tail =
				        random() % 2 ? random() : random() % kCapacity & ~15ull;
			if (random() % 8 == 0)
				header.head =
				        random() % 2 ? random() : random() % kCapacity & ~15ull;
			if (const auto got = consumer.take(room)) {
				ASSERT_LE(got->bytes.size(), room.size());
				consumer.done();
			}
			producer.lend({}, 1, bytes(random() % 9000, 2));
			revoke(producer);
			producer.await_room();
		}
	}
}

TEST_F(RingTest, RefusesSegmentsThatAreNoRings)
{
	Consumer consumer;
	EXPECT_NE(consumer.open(RingEnd::make(4096), to_producer), "");
	EXPECT_NE(consumer.open(RingEnd::make(kCapacity + 4096), to_producer), "");
	EXPECT_NE(consumer.open(Fd(), to_producer), "");
}

TEST_F(RingTest, OneSideTellsThatItHasDone)
{
	EXPECT_FALSE(in.closed());
	out.close();
	EXPECT_TRUE(in.closed());
	EXPECT_TRUE(rings(to_consumer));
}

} // namespace
} // namespace tern::shm
