// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/shared_ram.h"

#include <array>
#include <gtest/gtest.h>

namespace tern {
namespace {

class SharedRam : public testing::Test {
protected:
	SharedRam()
	{
		tern_shared_ram_add(&ram, one.data(), one.size());
		tern_shared_ram_add(&ram, other.data(), other.size());
	}

	std::array<char, 64> one, other;
	tern_shared_ram ram{};
	tern_ram_range range{};
};

TEST_F(SharedRam, FindsWhatLiesInOneBlock)
{
	ASSERT_TRUE(tern_shared_ram_find(&ram, other.data() + 60, 4, &range));
	EXPECT_EQ(range.block, 1u);
	EXPECT_EQ(range.offset, 60u);
	EXPECT_EQ(range.size, 4u);
	EXPECT_FALSE(tern_shared_ram_find(&ram, other.data() + 60, 5, &range));
	EXPECT_FALSE(tern_shared_ram_find(&ram, other.data() + 64, 0, &range));
	EXPECT_FALSE(tern_shared_ram_find(&ram, nullptr, 1, &range));
}

/* A DIMM is unplugged and another one gets its address: peers still have the old memory. */
TEST_F(SharedRam, WhatComesInPlaceOfRemovedRamIsNotShared)
{
	tern_shared_ram_remove(&ram, one.data());
	EXPECT_FALSE(tern_shared_ram_find(&ram, one.data(), 1, &range));
	ASSERT_TRUE(tern_shared_ram_find(&ram, other.data(), 1, &range));
	EXPECT_EQ(range.block, 1u) << "the others keep their numbers";
}

} // namespace
} // namespace tern
