// SPDX-License-Identifier: GPL-2.0-or-later
#include <cstring>
#include <gtest/gtest.h>

#include "qemu/wire/output_queue.h"
#include "tests/unit/wire/frames.h"

namespace tern::wire {
namespace {

Bytes take(OutputQueue &queue, size_t size)
{
	Bytes taken;
	for (const iovec &piece : queue.pieces()) {
		const auto *bytes = static_cast<const std::byte *>(piece.iov_base);
		const size_t part = std::min(size - taken.size(), piece.iov_len);
		taken.insert(taken.end(), bytes, bytes + part);
	}
	queue.written(taken.size());
	return taken;
}

TEST(OutputQueue, KeepsOrderAcrossItsEdge)
{
	OutputQueue queue(256);
	Bytes expected, got;
	for (uint32_t i = 0; i < 100; i++) {
		const Bytes sent = frame(1, 2, i, 60 + i % 30);
		ASSERT_TRUE(queue.push(sent));
		const Bytes bytes = on_stream(sent);
		expected.insert(expected.end(), bytes.begin(), bytes.end());
		while (queue.size() > 128) {
			const Bytes part = take(queue, 17);
			got.insert(got.end(), part.begin(), part.end());
		}
	}
	const Bytes rest = take(queue, queue.size());
	got.insert(got.end(), rest.begin(), rest.end());
	EXPECT_EQ(got, expected);
	EXPECT_TRUE(queue.empty());
}

TEST(OutputQueue, TakesAFrameWhollyOrNotAtAll)
{
	OutputQueue queue(128);
	EXPECT_TRUE(queue.push(frame(1, 2, 0, 60)));
	EXPECT_TRUE(queue.push(frame(1, 2, 1, 60)));
	EXPECT_FALSE(queue.push(frame(1, 2, 2, 1)));
	EXPECT_EQ(queue.size(), 128u);
	take(queue, 5);
	EXPECT_TRUE(queue.push(frame(1, 2, 2, 1)));
	EXPECT_EQ(queue.size(), 128u);
}

} // namespace
} // namespace tern::wire
