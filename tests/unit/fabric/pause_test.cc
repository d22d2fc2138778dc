// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/formats/pause.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/fabric/frames.h"

namespace tern::fabric {
namespace {

/* The bytes of the standard, so that the two functions cannot be wrong together. */
TEST(Pause, BytesOfTheStandard)
{
	const uint8_t expected[] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0,    0,    0,    0,   0, 0,
	                            0x88, 0x08, 0x01, 0x01, 0x00, 0x08, 0,    0,    0,    0,   0, 0,
	                            0x12, 0x34, 0,    0,    0,    0,    0x00, 0x00, 0x00, 0x00};
	const PauseFrame frame = pause_frame(3, 0x1234);
	EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(expected)),
	                               std::span(frame).first(sizeof(expected))));
}

TEST(Pause, Parsed)
{
	const auto pause = parse_pause(pause_frame(6, kMaxQuanta));
	ASSERT_TRUE(pause);
	for (unsigned i = 0; i < kPriorities; i++)
		EXPECT_EQ((*pause)[i], i == 6 ? std::optional(kMaxQuanta) : std::nullopt) << i;
}

TEST(Pause, OtherFramesAreNone)
{
	EXPECT_FALSE(parse_pause(test::roce_frame({})));
	PauseFrame link_pause = pause_frame(0, 1);
	link_pause[14] = link_pause[15] = std::byte{0};
	EXPECT_FALSE(parse_pause(link_pause));
	const PauseFrame whole = pause_frame(0, 1);
	EXPECT_FALSE(parse_pause(std::span(whole).first(33)));
}

} // namespace
} // namespace tern::fabric
