// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/link.h"

#include <gtest/gtest.h>
#include <vector>

#include "tests/support/no_descriptors.h"

namespace tern {
namespace {

/* Tests a link whose QEMU netdev takes no frames. */
class LinkTest : public testing::Test {
protected:
	/* Sends until there is no room. */
	void fill()
	{
		while (link_.transmit(frame_)) {
		}
	}

	static tern_engine_ops silent()
	{
		tern_engine_ops ops{};
		ops.frames_pending = [](void *) {};
		return ops;
	}

	const std::vector<std::byte> frame_{60};
	const tern_engine_config config_{};
	const tern_engine_ops ops_ = silent();
	GuestMemory memory_{ops_, nullptr, nullptr};
	Parking parking_;
	Tracer tracer_{ops_, nullptr, 0};
	Link link_{config_, ops_, nullptr, memory_, parking_, tracer_};
};

/* The link drops all frames while the cable is out, so a QP must not wait for room. */
TEST_F(LinkTest, NobodyWaitsForRoomWithoutACable)
{
	link_.plug(true);
	fill();
	EXPECT_FALSE(link_.take_room());
	link_.plug(false);
	EXPECT_TRUE(link_.has_work());
	EXPECT_EQ(link_.take_room(), 0);
	EXPECT_FALSE(link_.take_room());
	EXPECT_FALSE(link_.has_work());
	EXPECT_TRUE(link_.transmit(frame_));
}

TEST_F(LinkTest, WithTheCableBackTheyWaitAgain)
{
	link_.plug(true);
	fill();
	link_.plug(false);
	EXPECT_TRUE(link_.take_room());
	link_.plug(true);
	EXPECT_FALSE(link_.transmit(frame_));
	EXPECT_FALSE(link_.take_room());
	while (link_.rings().next_sent())
		link_.rings().pop_sent();
	EXPECT_EQ(link_.take_room(), 0);
	EXPECT_TRUE(link_.transmit(frame_));
}

/* Nothing could wake the engine's thread. */
TEST_F(LinkTest, ThereIsNoEngineWithoutDescriptors)
{
	tern_engine_config config{};
	config.engines = config.vectors = config.doorbell_pages = config.link_speed_mbps = 1;
	const test::NoDescriptors none;
	EXPECT_EQ(tern_engine_new(&config, &ops_, nullptr), nullptr);
}

} // namespace
} // namespace tern
