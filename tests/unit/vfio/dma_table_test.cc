// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/dma_table.h"

#include <gtest/gtest.h>
#include <thread>

#include "tests/unit/vfio/client.h"

namespace tern::vfio::test {
namespace {

constexpr uint64_t kSize = 4 * kPageSize;

class DmaTableTest : public testing::Test {
protected:
	DmaTableTest() { table.set_bus_master(true); }

	bool read(uint64_t from, size_t size)
	{
		std::vector<std::byte> bytes(size);
		return table.reader(0).read(from, bytes);
	}
	bool write(uint64_t to, uint64_t value)
	{
		return table.reader(0).write(to, std::as_bytes(std::span(&value, 1)));
	}
	uint64_t stored(const Fd &fd, off_t at)
	{
		uint64_t value = 0;
		EXPECT_EQ(pread(fd.get(), &value, sizeof(value), at), 8);
		return value;
	}

	DmaTable table{1};
	Fd memory = guest_memory(kSize);
};

TEST_F(DmaTableTest, AccessesGoToTheClientsMemory)
{
	ASSERT_EQ(table.map(whole(0x10000, kSize), memory), 0);
	EXPECT_TRUE(write(0x10008, 0x1122334455667788));
	EXPECT_EQ(stored(memory, 8), 0x1122334455667788u);
	EXPECT_TRUE(table.reader(0).store64(0x10010, 42));
	EXPECT_EQ(stored(memory, 16), 42u);
	uint32_t value = 0;
	EXPECT_TRUE(table.reader(0).load32(0x10010, value));
	EXPECT_EQ(value, 42u);
}

TEST_F(DmaTableTest, OffsetsAreThoseOfTheDescriptor)
{
	DmaMap second = whole(0x10000, kPageSize);
	second.offset = 2 * kPageSize;
	ASSERT_EQ(table.map(second, memory), 0);
	EXPECT_TRUE(write(0x10000, 5));
	EXPECT_EQ(stored(memory, 2 * kPageSize), 5u);
}

TEST_F(DmaTableTest, AnAccessMayCrossRangesButNoGap)
{
	const Fd other = guest_memory(kSize);
	ASSERT_EQ(table.map(whole(0, kSize), memory), 0);
	ASSERT_EQ(table.map(whole(kSize, kSize), other), 0);
	EXPECT_TRUE(write(kSize - 4, 0x2222222211111111));
	EXPECT_EQ(stored(other, 0), 0x22222222u);
	EXPECT_FALSE(write(2 * kSize - 4, 1));
	EXPECT_FALSE(table.reader(0).store64(kSize - 4, 1));
	EXPECT_FALSE(read(UINT64_MAX - 3, 8));
}

TEST_F(DmaTableTest, RightsAreKept)
{
	DmaMap what = whole(0, kSize);
	what.flags = VFIO_DMA_MAP_FLAG_READ;
	ASSERT_EQ(table.map(what, memory), 0);
	EXPECT_TRUE(read(0, 8));
	EXPECT_FALSE(write(0, 1));
	EXPECT_FALSE(table.reader(0).store64(0, 1));
}

TEST_F(DmaTableTest, NothingWithoutBusMastering)
{
	ASSERT_EQ(table.map(whole(0, kSize), memory), 0);
	table.set_bus_master(false);
	EXPECT_FALSE(read(0, 8));
}

TEST_F(DmaTableTest, MemoryWithoutADescriptorCannotBeAccessed)
{
	ASSERT_EQ(table.map(whole(0, kSize), Fd()), 0);
	EXPECT_FALSE(read(0, 8));
	EXPECT_EQ(table.unmap(0, kSize), 0);
}

TEST_F(DmaTableTest, RefusesBadRanges)
{
	EXPECT_EQ(table.map(whole(0, 0), memory), EINVAL);
	EXPECT_EQ(table.map(whole(1, kSize), memory), EINVAL);
	EXPECT_EQ(table.map(whole(0, 100), memory), EINVAL);
	EXPECT_EQ(table.map(whole(uint64_t{0} - kPageSize, 2 * kPageSize), memory), EINVAL);
	DmaMap what = whole(0, kSize);
	what.flags = 0;
	EXPECT_EQ(table.map(what, memory), EINVAL);
	what.flags = 8;
	EXPECT_EQ(table.map(what, memory), EINVAL);
	what = whole(0, kSize);
	what.offset = uint64_t{0} - kPageSize;
	EXPECT_EQ(table.map(what, memory), EINVAL);
}

TEST_F(DmaTableTest, RefusesWhatOverlaps)
{
	ASSERT_EQ(table.map(whole(kSize, kSize), memory), 0);
	EXPECT_EQ(table.map(whole(kSize, kSize), memory), EEXIST);
	EXPECT_EQ(table.map(whole(kSize + kPageSize, kPageSize), memory), EEXIST);
	EXPECT_EQ(table.map(whole(kSize - kPageSize, 2 * kPageSize), memory), EEXIST);
	EXPECT_EQ(table.map(whole(2 * kSize - kPageSize, kSize), memory), EEXIST);
	EXPECT_EQ(table.map(whole(0, kSize), memory), 0);
	EXPECT_EQ(table.map(whole(2 * kSize, kSize), memory), 0);
}

TEST_F(DmaTableTest, RefusesMemoryThatMayShrink)
{
	EXPECT_EQ(table.map(whole(0, kSize), guest_memory(kSize, 0)), EPERM);
	EXPECT_EQ(table.map(whole(0, 2 * kSize), memory), EPERM); /* beyond its end */
	Fd pipe_ends[2];
	int fds[2];
	ASSERT_EQ(pipe(fds), 0);
	pipe_ends[0] = Fd(fds[0]);
	pipe_ends[1] = Fd(fds[1]);
	EXPECT_EQ(table.map(whole(0, kSize), pipe_ends[0]), EPERM);
}

TEST_F(DmaTableTest, RefusesTooManyRanges)
{
	for (uint64_t i = 0; i < kMaxRanges; i++)
		ASSERT_EQ(table.map(whole(i * kPageSize, kPageSize), Fd()), 0);
	EXPECT_EQ(table.map(whole(kMaxRanges * kPageSize, kPageSize), Fd()), ENOSPC);
}

/* A client may map its memory page by page. What lies before a page takes no addresses. */
TEST_F(DmaTableTest, PagesAtHighOffsets)
{
	constexpr uint64_t kHuge = uint64_t{32} << 30;
	const Fd huge = guest_memory(kHuge);
	DmaMap what = whole(0, kPageSize);
	for (uint64_t i = 0; i < kMaxRanges; i++) {
		what.address = i * kPageSize;
		what.offset = kHuge - (i + 1) * kPageSize;
		ASSERT_EQ(table.map(what, huge), 0) << i;
	}
	EXPECT_TRUE(write(what.address + 8, 5));
	EXPECT_EQ(stored(huge, static_cast<off_t>(what.offset) + 8), 5u);
	EXPECT_EQ(table.unmap(what.address, kPageSize), 0);
	what.offset = kHuge;
	EXPECT_EQ(table.map(what, huge), EPERM);
}

TEST_F(DmaTableTest, UnmapsWhatWasMappedOnly)
{
	ASSERT_EQ(table.map(whole(0, kSize), memory), 0);
	EXPECT_EQ(table.unmap(0, kPageSize), EINVAL);
	EXPECT_EQ(table.unmap(kPageSize, kSize), EINVAL);
	EXPECT_EQ(table.unmap(kSize, kSize), ENOENT);
	EXPECT_EQ(table.unmap(0, 0), EINVAL);
	EXPECT_EQ(table.unmap(kPageSize, ~uint64_t{0}), EINVAL);
	EXPECT_TRUE(read(0, 8));
	EXPECT_EQ(table.unmap(0, kSize), 0);
	EXPECT_FALSE(read(0, 8));
	EXPECT_EQ(table.unmap(0, kSize), ENOENT);
}

/* QEMU unmaps several ranges with one message for virtio-mem and for a vIOMMU. */
TEST_F(DmaTableTest, UnmapsSeveralRangesAtOnce)
{
	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(table.map(whole(2 * i * kPageSize, kPageSize), memory), 0);
	EXPECT_EQ(table.unmap(kPageSize, 4 * kPageSize), 0);
	EXPECT_TRUE(read(0, 8));
	EXPECT_FALSE(read(2 * kPageSize, 8));
	EXPECT_FALSE(read(4 * kPageSize, 8));
	EXPECT_TRUE(read(6 * kPageSize, 8));
	EXPECT_EQ(table.map(whole(2 * kPageSize, kPageSize), memory), 0);
}

/* A reader that holds the list may read what is being unmapped until it releases it. */
TEST_F(DmaTableTest, UnmappingWaitsForReaders)
{
	ASSERT_EQ(table.map(whole(0, kSize), memory), 0);
	table.reader(0).hold();
	std::atomic<bool> done{false};
	std::thread unmapping([&] {
		EXPECT_EQ(table.unmap(0, kSize), 0);
		done = true;
	});
	for (int i = 0; i < 1000; i++) {
		EXPECT_TRUE(read(0, 8));
		EXPECT_FALSE(done);
	}
	table.reader(0).release();
	unmapping.join();
	EXPECT_FALSE(read(0, 8));
}

} // namespace
} // namespace tern::vfio::test
