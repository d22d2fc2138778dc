// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/frame_rings.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace tern {
namespace {

/* A front end that counts what it is told. */
class FrameRingsTest : public testing::Test {
protected:
	static std::vector<std::byte> frame(size_t size, uint8_t content)
	{
		return std::vector<std::byte>(size, std::byte{content});
	}
	/* What the card receives, the first byte of each frame. */
	std::vector<uint8_t> received(unsigned budget)
	{
		std::vector<uint8_t> first;
		rings_.receive(budget, [&](std::span<const std::byte> bytes) {
			first.push_back(std::to_integer<uint8_t>(bytes[0]));
		});
		return first;
	}

	static tern_engine_ops counting()
	{
		tern_engine_ops ops{};
		ops.frames_pending = [](void *test) {
			static_cast<FrameRingsTest *>(test)->frames_pending_++;
		};
		ops.receive_ready = [](void *test) {
			static_cast<FrameRingsTest *>(test)->receive_ready_++;
		};
		return ops;
	}

	std::atomic<unsigned> frames_pending_{0};
	std::atomic<unsigned> receive_ready_{0};
	const tern_engine_ops ops_ = counting();
	Parking parking_;
	FrameRings rings_{ops_, this, parking_};
};

TEST_F(FrameRingsTest, FramesArriveInOrderAndWhole)
{
	for (uint8_t i = 1; i <= 3; i++)
		EXPECT_TRUE(rings_.push_received(frame(60, i)));
	EXPECT_TRUE(rings_.has_work());
	EXPECT_EQ(received(2), (std::vector<uint8_t>{1, 2}));
	EXPECT_EQ(received(2), (std::vector<uint8_t>{3}));
	EXPECT_FALSE(rings_.has_work());

	const auto longest = frame(kMaxFrame, 7);
	EXPECT_TRUE(rings_.send(longest));
	EXPECT_EQ(frames_pending_, 1);
	const Frame *sent = rings_.next_sent();
	ASSERT_NE(sent, nullptr);
	EXPECT_TRUE(std::ranges::equal(sent->bytes(), longest));
	rings_.pop_sent();
	EXPECT_EQ(rings_.next_sent(), nullptr);
}

TEST_F(FrameRingsTest, TheFrontEndIsToldWhenHalfOfAFullRingIsEmpty)
{
	for (size_t i = 0; i < FrameRings::kFrames; i++)
		ASSERT_TRUE(rings_.push_received(frame(60, 0)));
	EXPECT_FALSE(rings_.can_receive());
	EXPECT_FALSE(rings_.push_received(frame(60, 0)));
	received(FrameRings::kFrames / 2 - 1);
	EXPECT_EQ(receive_ready_, 0);
	received(1);
	EXPECT_EQ(receive_ready_, 1);
	received(FrameRings::kFrames);
	EXPECT_EQ(receive_ready_, 1);
}

TEST_F(FrameRingsTest, DiscardingMakesRoomAtOnce)
{
	while (rings_.push_received(frame(60, 0)))
		;
	rings_.discard_received();
	EXPECT_EQ(receive_ready_, 1);
	EXPECT_TRUE(received(1).empty());
	EXPECT_TRUE(rings_.can_receive());
}

TEST_F(FrameRingsTest, TheCardIsToldOnceWhenHalfOfAFullRingIsEmpty)
{
	for (size_t i = 0; i < FrameRings::kFrames; i++)
		ASSERT_TRUE(rings_.send(frame(60, 0)));
	EXPECT_FALSE(rings_.take_room());
	EXPECT_FALSE(rings_.send(frame(60, 0)));
	for (size_t i = 0; i < FrameRings::kFrames / 2; i++) {
		EXPECT_FALSE(rings_.has_work());
		rings_.pop_sent();
		EXPECT_FALSE(rings_.send(frame(60, 0))) << "before the one that waits";
	}
	EXPECT_TRUE(rings_.has_work());
	EXPECT_TRUE(rings_.take_room());
	EXPECT_FALSE(rings_.take_room());
	EXPECT_TRUE(rings_.send(frame(60, 0)));
}

/* Each side waits only for what the other one tells it. */
TEST_F(FrameRingsTest, NoWakeUpIsLost)
{
	constexpr unsigned kCount = 200'000;
	std::thread front_end([&] {
		const auto bytes = frame(60, 1);
		for (unsigned sent = 0, told = 0; sent < kCount;) {
			if (rings_.push_received(bytes)) {
				sent++;
				continue;
			}
			while (receive_ready_ == told)
				std::this_thread::yield();
			told++;
		}
	});
	unsigned taken = 0;
	while (taken < kCount) {
		parking_.sleep(std::nullopt, [&] { return rings_.has_work(); });
		rings_.receive(32, [&](std::span<const std::byte>) { taken++; });
	}
	front_end.join();
	EXPECT_EQ(taken, kCount);
}

/* One sender is refused and waits; another one then finds the ring full, or not any more. */
TEST_F(FrameRingsTest, ASenderThatWaitsIsToldWhateverOthersSend)
{
	constexpr unsigned kRounds = 500;
	const auto bytes = frame(60, 1);
	std::atomic<bool> stop{false};
	std::atomic<size_t> popped{0};
	std::thread front_end([&] {
		while (!stop) {
			if (!rings_.next_sent()) {
				std::this_thread::yield();
				continue;
			}
			rings_.pop_sent();
			popped++;
		}
	});
	size_t sent = 0;
	unsigned lost = 0;
	for (unsigned i = 0; i < kRounds; i++) {
		while (rings_.send(bytes))
			sent++;
		sent += rings_.send(bytes);
		while (popped < sent)
			std::this_thread::yield();
		lost += !rings_.take_room();
	}
	stop = true;
	front_end.join();
	EXPECT_EQ(lost, 0);
}

} // namespace
} // namespace tern
