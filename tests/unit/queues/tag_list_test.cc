// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "qemu/rnic/queues/tag_list.h"

namespace tern {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};

bool add(TagList &list, uint32_t entry, uint64_t tag, uint64_t mask = kAll)
{
	return list.add(entry, tag, mask, {.addr = entry, .length = 1, .lkey = 1});
}

TEST(TagList, OldestThatFits)
{
	TagList list(4);
	EXPECT_TRUE(add(list, 3, 7));
	EXPECT_TRUE(add(list, 1, 5));
	EXPECT_TRUE(add(list, 0, 5));
	EXPECT_EQ(list.match(6), std::nullopt);
	EXPECT_EQ(list.match(5), 1u);
	EXPECT_EQ(list.match(5), 0u);
	EXPECT_EQ(list.match(5), std::nullopt);
	EXPECT_EQ(list.match(7), 3u);
	EXPECT_EQ(list.buffer(3).addr, 3u);
}

TEST(TagList, Masks)
{
	TagList list(4);
	EXPECT_TRUE(add(list, 0, 0x12'00, 0xff'00));
	EXPECT_TRUE(add(list, 1, 0, 0));
	EXPECT_TRUE(add(list, 2, 0x01, 0)) << "which nothing can match";
	EXPECT_EQ(list.match(0x13'34), 1u);
	EXPECT_EQ(list.match(0x13'34), std::nullopt);
	EXPECT_EQ(list.match(0xab'12'34), 0u);
}

TEST(TagList, EntriesInUse)
{
	TagList list(2);
	EXPECT_FALSE(add(list, 2, 0));
	EXPECT_TRUE(add(list, 0, 5));
	EXPECT_FALSE(add(list, 0, 6));
	EXPECT_EQ(list.match(5), 0u);
	EXPECT_FALSE(add(list, 0, 6)) << "its message is still coming";
	EXPECT_EQ(list.remove(0), TagList::Removed::NotListed);
	list.release(0);
	EXPECT_TRUE(add(list, 0, 6));
	EXPECT_EQ(list.remove(0), TagList::Removed::Done);
	EXPECT_EQ(list.remove(0), TagList::Removed::NotListed);
	EXPECT_EQ(list.remove(2), TagList::Removed::NoEntry);
	EXPECT_EQ(list.match(6), std::nullopt);
}

/* What is added while the host does not know of all unexpected messages waits for it. */
TEST(TagList, Synchronize)
{
	TagList list(8);
	EXPECT_TRUE(add(list, 0, 1));
	list.count_unexpected();
	list.count_unexpected();
	EXPECT_TRUE(add(list, 1, 2));
	EXPECT_TRUE(add(list, 2, 3));
	EXPECT_EQ(list.match(2), std::nullopt);
	EXPECT_EQ(list.match(1), 0u) << "it was there before them";
	list.synchronize(1);
	EXPECT_FALSE(list.synchronized());
	EXPECT_EQ(list.match(2), std::nullopt);
	list.synchronize(2);
	EXPECT_TRUE(list.synchronized());
	EXPECT_EQ(list.match(3), 2u);
	EXPECT_EQ(list.match(2), 1u);
}

/* The border between those that can be matched and those that wait moves with each removal. */
TEST(TagList, RemoveAcrossTheBorder)
{
	TagList list(8);
	EXPECT_TRUE(add(list, 0, 10));
	EXPECT_TRUE(add(list, 1, 11));
	list.count_unexpected();
	EXPECT_TRUE(add(list, 2, 12));
	EXPECT_EQ(list.remove(0), TagList::Removed::Done);
	EXPECT_EQ(list.match(12), std::nullopt);
	EXPECT_EQ(list.match(11), 1u);
	EXPECT_EQ(list.remove(2), TagList::Removed::Done);
	list.synchronize(1);
	EXPECT_TRUE(add(list, 2, 13));
	EXPECT_EQ(list.match(13), 2u);
}

} // namespace
} // namespace tern
