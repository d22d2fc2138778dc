// SPDX-License-Identifier: GPL-2.0-or-later
#include "map_keys.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace tern::tools;

namespace {

struct Key {
	int number;
};

/* A map as the kernel has it: after a key that it does not have it begins anew. */
struct Map {
	std::vector<int> numbers;

	bool next(const Key *previous, Key &key) const
	{
		auto at = numbers.begin();

		if (previous) {
			const auto found = std::ranges::find(numbers, previous->number);
			at = found == numbers.end() ? numbers.begin() : found + 1;
		}
		if (at == numbers.end())
			return false;
		key.number = *at;
		return true;
	}
};

/* In order. */
std::vector<int> numbers_of(const std::vector<Key> &keys)
{
	std::vector<int> numbers;

	for (const Key &key : keys)
		numbers.push_back(key.number);
	std::ranges::sort(numbers);
	return numbers;
}

TEST(MapKeys, AllOfAMap)
{
	const Map map{{3, 1, 2}};
	const auto next = [&](const Key *previous, Key &key) { return map.next(previous, key); };

	EXPECT_EQ(numbers_of(map_keys<Key>(8, next)), (std::vector{1, 2, 3}));
	EXPECT_TRUE(map_keys<Key>(8, [](const Key *, Key &) { return false; }).empty());
}

TEST(MapKeys, EachOnceThoughTheMapBeginsAnew)
{
	Map map{{3, 1, 2, 4}};
	const auto next = [&](const Key *previous, Key &key) {
		if (previous && previous->number == 2)
			std::erase(map.numbers, 2);
		return map.next(previous, key);
	};

	EXPECT_EQ(numbers_of(map_keys<Key>(4, next)), (std::vector{1, 2, 3, 4}));
}

TEST(MapKeys, AnEndThoughTheMapAlwaysBeginsAnew)
{
	int calls = 0;
	const auto next = [&](const Key *, Key &key) {
		calls++;
		key.number = 1;
		return true;
	};

	EXPECT_EQ(numbers_of(map_keys<Key>(100, next)), std::vector{1});
	EXPECT_LT(calls, 1000);
}

} // namespace
