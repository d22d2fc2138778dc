// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/object_table.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(ObjectTable, NumbersFromOne)
{
	ObjectTable<int> table(4);
	EXPECT_EQ(table.insert(std::make_unique<int>(7)), 1u);
	EXPECT_EQ(*table.find(1), 7);
	EXPECT_EQ(table.find(0), nullptr);
	EXPECT_EQ(table.find(2), nullptr);
	EXPECT_EQ(table.find(UINT32_MAX), nullptr);
}

TEST(ObjectTable, FullThenFreed)
{
	ObjectTable<int> table(2);
	EXPECT_TRUE(table.insert(std::make_unique<int>(1)));
	EXPECT_TRUE(table.insert(std::make_unique<int>(2)));
	EXPECT_FALSE(table.insert(std::make_unique<int>(3)));
	EXPECT_TRUE(table.remove(1));
	EXPECT_FALSE(table.remove(1));
	EXPECT_EQ(table.insert(std::make_unique<int>(4)), 1u);
}

/* A number that was freed comes back as late as possible: who still holds it meets nobody. */
TEST(ObjectTable, FreedNumbersComeBackLate)
{
	ObjectTable<int> table(3);
	EXPECT_EQ(table.insert(std::make_unique<int>(0)), 1u);
	table.remove(1);
	EXPECT_EQ(table.insert(std::make_unique<int>(0)), 2u);
	table.remove(2);
	EXPECT_EQ(table.insert(std::make_unique<int>(0)), 3u);
	EXPECT_EQ(table.insert(std::make_unique<int>(0)), 1u);
	EXPECT_EQ(table.insert(std::make_unique<int>(0)), 2u);
	EXPECT_FALSE(table.insert(std::make_unique<int>(0)));
}

TEST(ObjectTable, ManyTimesAround)
{
	ObjectTable<uint32_t> table(5);
	std::vector<uint32_t> live;
	for (uint32_t i = 0; i < 1000; i++) {
		if (live.size() == 5 || (i % 3 == 0 && !live.empty())) {
			EXPECT_TRUE(table.remove(live.front()));
			live.erase(live.begin());
		}
		const auto n = table.insert(std::make_unique<uint32_t>(i));
		ASSERT_TRUE(n);
		ASSERT_GE(*n, 1u);
		ASSERT_LE(*n, 5u);
		live.push_back(*n);
	}
}

/* An owner other than 0 has at most as many as are left, and gets back what it removes. */
TEST(ObjectTable, OwnersLeaveSomeToOthers)
{
	ObjectTable<int> table(8);
	const auto insert = [&](uint32_t owner) {
		return table.insert(std::make_unique<int>(0), owner);
	};
	std::vector<uint32_t> numbers;
	for (int i = 0; i < 4; i++)
		numbers.push_back(insert(5).value());
	EXPECT_FALSE(insert(5));
	EXPECT_TRUE(insert(6));
	EXPECT_TRUE(insert(6));
	EXPECT_FALSE(insert(6));
	EXPECT_TRUE(insert(7));
	EXPECT_FALSE(insert(7));
	EXPECT_EQ(table.owner(numbers[0]), 5u);
	EXPECT_TRUE(insert(0));
	EXPECT_FALSE(insert(0));
	table.remove(numbers[0]);
	EXPECT_EQ(table.owner(numbers[0]), 0u);
	table.remove(numbers[1]);
	table.remove(numbers[2]);
	EXPECT_TRUE(insert(5));
	EXPECT_FALSE(insert(5));
}

/* A reserved number is no other object's, before and after it was used. */
TEST(ObjectTable, ReservedNumbers)
{
	ObjectTable<int> table(3, 0, 1);
	EXPECT_EQ(table.insert(std::make_unique<int>(2)), 2u);
	EXPECT_EQ(table.find(1), nullptr);
	table.insert_at(1, std::make_unique<int>(1));
	EXPECT_EQ(*table.find(1), 1);
	EXPECT_TRUE(table.remove(1));
	EXPECT_EQ(table.insert(std::make_unique<int>(3)), 3u);
	EXPECT_FALSE(table.insert(std::make_unique<int>(4)));
	table.insert_at(1, std::make_unique<int>(1));
}

TEST(ObjectTable, NumbersFromABase)
{
	ObjectTable<int> table(2, 0x500000);
	for (int round = 0; round < 3; round++) {
		const auto one = table.insert(std::make_unique<int>(1));
		const auto other = table.insert(std::make_unique<int>(2));
		EXPECT_FALSE(table.insert(std::make_unique<int>(3)));
		EXPECT_EQ(std::pair(*one, *other), std::pair(0x500001u, 0x500002u));
		EXPECT_EQ(*table.find(0x500002), 2);
		for (const uint32_t none : {0u, 1u, 2u, 0x4fffffu, 0x500000u, 0x500003u, 0x600001u})
			EXPECT_EQ(table.find(none), nullptr) << none;
		uint32_t sum = 0;
		table.for_each([&](uint32_t number, int &) { sum += number; });
		EXPECT_EQ(sum, 0xa00003u);
		EXPECT_TRUE(table.remove(*one));
		EXPECT_FALSE(table.remove(1));
		EXPECT_TRUE(table.remove(*other));
	}
}

} // namespace
} // namespace tern
