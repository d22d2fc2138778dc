// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/memory/page_list.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/support/fake_host.h"
#include "tests/support/page_tables.h"

namespace tern::test {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kTiB = uint64_t{1} << 40;

hw::tern_hw_pages contiguous(Iova iova)
{
	hw::tern_hw_pages pages{};
	pages.iova = iova;
	return pages;
}

hw::tern_hw_pages shape(unsigned levels, unsigned page_shift, Iova iova = 0x10000)
{
	auto pages = contiguous(iova);
	pages.levels = static_cast<uint8_t>(levels);
	pages.page_shift = static_cast<uint8_t>(page_shift);
	return pages;
}

bool valid(const hw::tern_hw_pages &pages, uint64_t first_offset, uint64_t length)
{
	return PageList::make(pages, first_offset, length).has_value();
}

TEST(PageListShape, Levels)
{
	for (unsigned levels = 1; levels <= 4; levels++)
		EXPECT_TRUE(valid(shape(levels, 12), 0, 4096)) << levels;
	EXPECT_FALSE(valid(shape(5, 12), 0, 4096));
	EXPECT_FALSE(valid(shape(255, 12), 0, 4096));
}

TEST(PageListShape, PageShifts)
{
	for (unsigned shift = 0; shift < 256; shift++)
		EXPECT_EQ(valid(shape(2, shift), 0, 4096), shift >= 12 && shift <= 30) << shift;
}

TEST(PageListShape, ContiguousHasNoPages)
{
	EXPECT_TRUE(valid(contiguous(0x123), 0, 77));
	EXPECT_FALSE(valid(shape(0, 12), 0, 4096));
	EXPECT_FALSE(valid(contiguous(0x1000), 1, 77));
}

TEST(PageListShape, ReservedBytes)
{
	for (unsigned i = 0; i < 6; i++) {
		auto pages = contiguous(0x1000);
		pages.rsvd[i] = 1;
		EXPECT_FALSE(valid(pages, 0, 4096)) << i;
	}
}

TEST(PageListShape, TablesAreAligned)
{
	EXPECT_FALSE(valid(shape(1, 12, 0x10008), 0, 4096));
	EXPECT_FALSE(valid(shape(1, 12, 0x10800), 0, 4096));
}

TEST(PageListShape, FirstOffsetIsInPageZero)
{
	EXPECT_TRUE(valid(shape(1, 12), 4095, 1));
	EXPECT_FALSE(valid(shape(1, 12), 4096, 1));
	EXPECT_FALSE(valid(shape(1, 12), kMax, 1));
}

TEST(PageListShape, WhatTheLevelsReach)
{
	for (unsigned levels = 1; levels <= 4; levels++) {
		const uint64_t reach = uint64_t{1} << (9 * levels + 12);
		EXPECT_TRUE(valid(shape(levels, 12), 0, reach)) << levels;
		EXPECT_FALSE(valid(shape(levels, 12), 0, reach + 1)) << levels;
		EXPECT_TRUE(valid(shape(levels, 12), 1, reach - 1)) << levels;
		EXPECT_FALSE(valid(shape(levels, 12), 1, reach)) << levels;
	}
}

TEST(PageListShape, NothingWraps)
{
	EXPECT_TRUE(valid(shape(4, 30), 0, kMax));
	EXPECT_FALSE(valid(shape(4, 30), 2, kMax));
	EXPECT_TRUE(valid(contiguous(kMax), 0, 1));
	EXPECT_FALSE(valid(contiguous(kMax), 0, 2));
	EXPECT_TRUE(valid(contiguous(0), 0, kMax));
	EXPECT_FALSE(valid(contiguous(2), 0, kMax));
	EXPECT_TRUE(valid(contiguous(kMax), 0, 0));
}

TEST(PageListShape, RegionsBeginAtTheirOffsetInThePage)
{
	/* one page of tables' reach is 2 MiB: with an offset of one, its last byte is out */
	EXPECT_TRUE(PageList::make_region(shape(1, 12), 0x5000, 2 << 20));
	EXPECT_FALSE(PageList::make_region(shape(1, 12), 0x5001, 2 << 20));
	EXPECT_TRUE(PageList::make_region(contiguous(0x1000), 0x5001, 2 << 20));
	EXPECT_FALSE(PageList::make_region(shape(1, 200), 0x5001, 4096));
	EXPECT_FALSE(PageList::make_region(shape(0, 200), 0x5001, 4096));
}

class PageListTest : public testing::Test {
protected:
	std::optional<PageList::Run> at(const PageList &list, uint64_t offset)
	{
		return list.at(cache_, memory_, offset);
	}

	FakeMemory memory_;
	TableCache cache_{memory_};
};

TEST_F(PageListTest, Contiguous)
{
	const auto list = *PageList::make(contiguous(0x1003), 0, 0x2000);
	const auto run = at(list, 0x10);
	ASSERT_TRUE(run);
	EXPECT_EQ(run->iova, 0x1013u);
	EXPECT_EQ(run->size, 0x2000u - 0x10);
	EXPECT_TRUE(at(list, 0x1fff));
	EXPECT_FALSE(at(list, 0x2000));
	EXPECT_FALSE(at(list, kMax));
}

TEST_F(PageListTest, AnEmptyListHasNoBytes)
{
	EXPECT_FALSE(at(PageList(), 0));
	EXPECT_FALSE(at(*PageList::make(contiguous(0x1000), 0, 0), 0));
}

class EveryLevel : public PageListTest, public testing::WithParamInterface<unsigned> {};

TEST_P(EveryLevel, RunsEndWithTheirPage)
{
	PageTables tables(memory_, GetParam());
	tables.set(0, 0x7000'0000);
	tables.set(1, 0x5000'0000);
	const auto list = *PageList::make(tables.pages(), 0x123, 4096);

	const auto first = at(list, 0);
	ASSERT_TRUE(first);
	EXPECT_EQ(first->iova, 0x7000'0123u);
	EXPECT_EQ(first->size, 4096u - 0x123);

	/* the second begins where the first ended, and ends with the buffer */
	const auto second = at(list, first->size);
	ASSERT_TRUE(second);
	EXPECT_EQ(second->iova, 0x5000'0000u);
	EXPECT_EQ(second->size, 0x123u);
}

TEST_P(EveryLevel, LastPage)
{
	const uint64_t pages = uint64_t{1} << (9 * GetParam());
	PageTables tables(memory_, GetParam());
	tables.set(pages - 1, 0x4000'0000);
	const auto list = *PageList::make(tables.pages(), 0, pages * 4096);
	const auto run = at(list, pages * 4096 - 1);
	ASSERT_TRUE(run);
	EXPECT_EQ(run->iova, 0x4000'0fffu);
	EXPECT_EQ(run->size, 1u);
}

TEST_P(EveryLevel, CopiesAcrossPages)
{
	Buffer buffer(memory_, 5 * 4096, GetParam());
	const auto list = *PageList::make(buffer.pages(), 0, 5 * 4096);
	std::vector<std::byte> data(3 * 4096);
	for (size_t i = 0; i < data.size(); i++)
		data[i] = static_cast<std::byte>(i * 11);

	EXPECT_TRUE(list.write(cache_, memory_, 1000, data));
	EXPECT_EQ(buffer.read(1000, data.size()), data);
	std::vector<std::byte> back(data.size());
	EXPECT_TRUE(list.read(cache_, memory_, 1000, back));
	EXPECT_EQ(back, data);
}

TEST_P(EveryLevel, PagesThatLieTogetherAreOneRun)
{
	PageTables tables(memory_, GetParam());
	const Iova places[] = {0x7000'0000, 0x7000'1000, 0x7000'2000, 0x5000'0000, 0x5000'2000};
	for (size_t i = 0; i < std::size(places); i++)
		tables.set(i, places[i]);
	memory_.map(0x7000'0000, 0x3000);
	memory_.map(0x5000'0000, 0x3000);
	const auto list = *PageList::make(tables.pages(), 0x10, 5 * 4096 - 0x10);
	const std::vector<std::byte> data(5 * 4096 - 0x10, std::byte{7});
	EXPECT_TRUE(list.write(cache_, memory_, 0, data));
	EXPECT_EQ(memory_.writes(), 3u);
	EXPECT_EQ(memory_.bytes(0x7000'0010, 0x3000 - 0x10),
	          std::vector(0x3000 - 0x10, std::byte{7}));

	PageList::Run run;
	EXPECT_EQ(list.find(cache_, memory_, 0x5ff0, 1, false, run), Reach::Fault);
	cache_.drop_all();
	EXPECT_EQ(list.find(cache_, memory_, 0x0ff0, 0x1000, false, run), Reach::Ok);
	EXPECT_EQ(run.iova, 0x7000'1000u);
	EXPECT_EQ(run.size, 0x1000u) << "no more than was asked for";
}

TEST_P(EveryLevel, RunsDoNotWrap)
{
	PageTables tables(memory_, GetParam());
	tables.set(0, 0 - Iova{0x1000});
	tables.set(1, 0);
	const auto list = *PageList::make(tables.pages(), 0, 8192);
	PageList::Run run;
	EXPECT_EQ(list.find(cache_, memory_, 0, 8192, true, run), Reach::Ok);
	EXPECT_EQ(run.size, 0x1000u);
}

TEST_P(EveryLevel, BigPages)
{
	PageTables tables(memory_, GetParam(), 30);
	tables.set(1, 0x1'4000'0000);
	const auto list = *PageList::make(tables.pages(), 0, uint64_t{2} << 30);
	const auto run = at(list, (uint64_t{1} << 30) + 5);
	ASSERT_TRUE(run);
	EXPECT_EQ(run->iova, 0x1'4000'0005u);
	EXPECT_EQ(run->size, (uint64_t{1} << 30) - 5);
}

INSTANTIATE_TEST_SUITE_P(Levels, EveryLevel, testing::Range(1u, 5u));

/* 4 KiB pages at each end and in the middle of 1 TiB; the tables between are missing. */
TEST_F(PageListTest, SparseTebibyte)
{
	PageTables tables(memory_, 4);
	const auto list = *PageList::make(tables.pages(), 0, kTiB);
	for (const uint64_t offset : {uint64_t{0}, kTiB / 2, kTiB - 4096}) {
		const Iova leaf = memory_.alloc(4096, 4096);
		tables.set(offset >> 12, leaf);
		const auto run = at(list, offset + 9);
		ASSERT_TRUE(run);
		EXPECT_EQ(run->iova, leaf + 9);
		cache_.drop_all();
	}
	/* address 0 as a table: not mapped */
	EXPECT_FALSE(at(list, kTiB / 4));
}

TEST_F(PageListTest, AnEntryThatIsNotAligned)
{
	PageTables tables(memory_, 2, 16);
	tables.set(0, 0x40'1000);
	const auto list = *PageList::make(tables.pages(), 0, 4096);
	EXPECT_FALSE(at(list, 0));

	/* the same above the last level */
	PageTables upper(memory_, 2);
	upper.set(0, 0x1000);
	memory_.put(upper.pages().iova.get(), Le<uint64_t>(0x2008));
	EXPECT_FALSE(at(*PageList::make(upper.pages(), 0, 4096), 0));
}

TEST_F(PageListTest, ATableThatCannotBeRead)
{
	Buffer buffer(memory_, 4096, 1);
	const auto list = *PageList::make(buffer.pages(), 0, 4096);
	memory_.fault(buffer.pages().iova.get() + 4095, 1);
	EXPECT_FALSE(at(list, 0));
	/* the failure is not remembered */
	memory_.heal();
	EXPECT_TRUE(at(list, 0));
}

TEST_F(PageListTest, APageThatCannotBeReached)
{
	Buffer buffer(memory_, 2 * 4096, 1);
	const auto list = *PageList::make(buffer.pages(), 0, 2 * 4096);
	memory_.unmap(buffer.at(4096), 1);
	std::array<std::byte, 16> data{};
	EXPECT_TRUE(list.read(cache_, memory_, 4080, data));
	EXPECT_FALSE(list.read(cache_, memory_, 4081, data));
	EXPECT_FALSE(list.write(cache_, memory_, 4081, data));
}

TEST_F(PageListTest, NoByteBeyondTheBuffer)
{
	Buffer buffer(memory_, 4096, 1);
	const auto list = *PageList::make(buffer.pages(), 0, 100);
	std::array<std::byte, 16> data{};
	EXPECT_TRUE(list.write(cache_, memory_, 84, data));
	EXPECT_FALSE(list.write(cache_, memory_, 85, data));
}

TEST_F(PageListTest, TablesAreReadOnce)
{
	Buffer buffer(memory_, 64 * 4096, 3);
	const auto list = *PageList::make(buffer.pages(), 0, 64 * 4096);
	for (uint64_t page = 0; page < 64; page++)
		EXPECT_TRUE(at(list, page * 4096));
	EXPECT_EQ(memory_.reads(), 3u);
}

/* Tables 256 pages apart share a slot, and must not be taken for one another. */
TEST_F(PageListTest, TwoTablesOfOneSlot)
{
	const Iova first = memory_.alloc(257 * 4096, 4096);
	const Iova second = first + 256 * 4096;
	memory_.put(first, Le<uint64_t>(0x1000));
	memory_.put(second, Le<uint64_t>(0x2000));
	const auto a = *PageList::make(shape(1, 12, first), 0, 4096);
	const auto b = *PageList::make(shape(1, 12, second), 0, 4096);
	for (unsigned i = 0; i < 3; i++) {
		EXPECT_EQ(at(a, 0)->iova, 0x1000u);
		EXPECT_EQ(at(b, 0)->iova, 0x2000u);
	}
}

TEST_F(PageListTest, DroppedTablesAreReadAgain)
{
	PageTables tables(memory_, 1);
	tables.set(0, 0x1000);
	const auto list = *PageList::make(tables.pages(), 0, 4096);
	EXPECT_EQ(at(list, 0)->iova, 0x1000u);
	tables.set(0, 0x2000);
	cache_.drop_all();
	EXPECT_EQ(at(list, 0)->iova, 0x2000u);
}

} // namespace
} // namespace tern::test
