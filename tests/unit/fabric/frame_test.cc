// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/frame.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace tern::fabric {
namespace {

/* Returns the memory that a frame of @size bytes takes: frames of a new pool lie side by side. */
size_t memory_of(size_t size)
{
	FramePool pool;
	const std::vector<std::byte> bytes(size);
	const FramePtr first = pool.make(bytes, 0), second = pool.make(bytes, 0);
	return static_cast<size_t>(reinterpret_cast<std::byte *>(second.get()) -
	                           reinterpret_cast<std::byte *>(first.get()));
}

/* The limits of queues count the bytes of frames, so they bound the memory only if a frame does not
 * take much more than its bytes. */
TEST(FramePool, AFrameTakesASmallMultipleOfItsSize)
{
	for (size_t size = 1; size <= kMaxEthFrame; size++) {
		ASSERT_GE(memory_of(size), sizeof(Frame) + size);
		ASSERT_LE(memory_of(size), std::max<size_t>(128, 7 * size)) << size;
	}
}

TEST(FramePool, TellsTheMemoryThatAFrameTakes)
{
	for (size_t size = 1; size <= kMaxEthFrame; size++)
		ASSERT_EQ(FramePool::slot_size(size), memory_of(size)) << size;
}

TEST(FramePool, UsesTheMemoryOfReturnedFramesAgain)
{
	FramePool pool;
	for (const size_t size : {14, 88, 89, 512, 513, 2048, 2049, 9018}) {
		const std::vector<std::byte> bytes(size, std::byte{0x5a});
		FramePtr frame = pool.make(bytes, 3);
		EXPECT_TRUE(std::ranges::equal(frame->bytes(), bytes));
		const Frame *before = frame.get();
		EXPECT_EQ(pool.used(), 1u);
		frame.reset();
		EXPECT_EQ(pool.used(), 0u);
		EXPECT_EQ(pool.make(bytes, 3).get(), before) << size;
	}
}

} // namespace
} // namespace tern::fabric
