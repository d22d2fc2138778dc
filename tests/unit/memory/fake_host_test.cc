// SPDX-License-Identifier: GPL-2.0-or-later
/* The tests rest on the fake host, so it has tests of its own. */
#include "tests/support/fake_host.h"

#include <gtest/gtest.h>

namespace tern::test {
namespace {

constexpr uint64_t kTop = UINT64_MAX;

TEST(RangeSet, CoversAcrossNeighbours)
{
	RangeSet set;
	set.add(0, 9);
	set.add(20, 29);
	EXPECT_FALSE(set.covers(5, 25));
	set.add(10, 19);
	EXPECT_TRUE(set.covers(5, 25));
	EXPECT_FALSE(set.covers(5, 30));
}

TEST(RangeSet, RemoveCutsAHole)
{
	RangeSet set;
	set.add(0, 99);
	set.remove(40, 59);
	EXPECT_TRUE(set.covers(0, 39));
	EXPECT_TRUE(set.covers(60, 99));
	EXPECT_FALSE(set.overlaps(40, 59));
	EXPECT_TRUE(set.overlaps(39, 40));
}

TEST(RangeSet, LastByte)
{
	RangeSet set;
	set.add(kTop - 1, kTop);
	EXPECT_TRUE(set.covers(kTop, kTop));
	set.remove(kTop, kTop);
	EXPECT_FALSE(set.covers(kTop, kTop));
	EXPECT_TRUE(set.covers(kTop - 1, kTop - 1));
}

TEST(FakeMemory, OnlyWhatIsMapped)
{
	FakeMemory memory;
	std::array<std::byte, 8> data{};
	EXPECT_FALSE(memory.read(0x1000, data));
	memory.map(0x1000, 8);
	EXPECT_TRUE(memory.read(0x1000, data));
	EXPECT_FALSE(memory.write(0x1001, data));
	memory.unmap(0x1000, 4);
	EXPECT_FALSE(memory.read(0x1000, data));
}

TEST(FakeMemory, BytesAcrossPages)
{
	FakeMemory memory;
	memory.map(0, 1 << 20);
	std::vector<std::byte> data(10000);
	for (size_t i = 0; i < data.size(); i++)
		data[i] = static_cast<std::byte>(i);
	EXPECT_TRUE(memory.write(4000, data));
	EXPECT_EQ(memory.bytes(4000, data.size()), data);
	EXPECT_EQ(memory.bytes(4000 + data.size(), 1)[0], std::byte{0});
}

TEST(FakeMemory, FaultsUntilHealed)
{
	FakeMemory memory;
	const Iova at = memory.alloc(64);
	std::array<std::byte, 8> data{};
	memory.fault(at + 7, 1, FakeMemory::Fault::Writes);
	EXPECT_TRUE(memory.read(at, data));
	EXPECT_FALSE(memory.write(at, data));
	EXPECT_TRUE(memory.write(at + 8, data));
	memory.heal();
	EXPECT_TRUE(memory.write(at, data));
}

TEST(FakeMemory, AlignedStoresAndLoads)
{
	FakeMemory memory;
	const Iova at = memory.alloc(64);
	EXPECT_TRUE(memory.store_release(at, 0x1122334455667788));
	EXPECT_FALSE(memory.store_release(at + 4, 0));
	uint32_t value = 0;
	EXPECT_TRUE(memory.load_acquire(at + 4, value));
	EXPECT_EQ(value, 0x11223344u);
	EXPECT_FALSE(memory.load_acquire(at + 2, value));
}

TEST(FakeMemory, AllocationsDoNotOverlap)
{
	FakeMemory memory;
	const Iova first = memory.alloc(100, 4096);
	const Iova second = memory.alloc(1, 4096);
	EXPECT_EQ(first % 4096, 0u);
	EXPECT_GE(second, first + 100);
	EXPECT_EQ(second % 4096, 0u);
}

TEST(RecordedWire, RefusesWhenFull)
{
	RecordedWire wire;
	const std::array<std::byte, 60> frame{};
	wire.accept_only(1);
	EXPECT_TRUE(wire.transmit(frame));
	EXPECT_FALSE(wire.transmit(frame));
	wire.accept_all();
	EXPECT_TRUE(wire.transmit(frame));
	EXPECT_EQ(wire.frames().size(), 2u);
	EXPECT_EQ(wire.refused(), 1u);
	EXPECT_EQ(wire.take().size(), 60u);
}

TEST(ManualClock, NeverGoesBack)
{
	ManualClock clock;
	clock.advance_to(100);
	clock.advance_to(50);
	clock.advance(1);
	EXPECT_EQ(clock.now(), 101u);
}

} // namespace
} // namespace tern::test
