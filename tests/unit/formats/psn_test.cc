// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/formats/psn.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(Psn, Has24Bits)
{
	EXPECT_EQ(Psn(0x12345678).value(), 0x345678u);
	EXPECT_EQ((Psn(0xffffff) + 1).value(), 0u);
	Psn psn(0xffffff);
	EXPECT_EQ((++psn).value(), 0u);
}

TEST(Psn, DistanceAcrossTheWrap)
{
	EXPECT_EQ(Psn(2) - Psn(0xfffffe), 4);
	EXPECT_EQ(Psn(0xfffffe) - Psn(2), -4);
	EXPECT_EQ(Psn(7) - Psn(7), 0);
}

TEST(Psn, DistanceAtTheFarEnd)
{
	EXPECT_EQ(Psn(0x7fffff) - Psn(0), 0x7fffff);
	EXPECT_EQ(Psn(0x800000) - Psn(0), -0x800000);
}

} // namespace
} // namespace tern
