// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <gtest/gtest.h>

#include "tests/unit/wire/frames.h"

namespace tern::wire {
namespace {

/* Feeds @stream in pieces of @piece bytes; the frames that came out. */
std::vector<Bytes> read_all(FrameReader &reader, const Bytes &stream, size_t piece)
{
	std::vector<Bytes> frames;
	for (size_t at = 0; at < stream.size();) {
		const auto room = reader.room();
		const size_t size = std::min({piece, room.size(), stream.size() - at});
		EXPECT_NE(size, 0u);
		std::copy_n(stream.begin() + static_cast<ptrdiff_t>(at), size, room.begin());
		reader.filled(size);
		at += size;
		while (const auto frame = reader.next())
			frames.emplace_back(frame->begin(), frame->end());
		if (reader.broken())
			break;
	}
	return frames;
}

TEST(FrameReader, FindsFramesInPiecesOfAnySize)
{
	std::vector<Bytes> sent;
	Bytes stream;
	for (const size_t size : {size_t{1}, size_t{14}, size_t{60}, size_t{9014}, kMaxFrame}) {
		sent.push_back(frame(1, 2, 7, size));
		const Bytes bytes = on_stream(sent.back());
		stream.insert(stream.end(), bytes.begin(), bytes.end());
	}
	for (const size_t piece :
	     {size_t{1}, size_t{3}, size_t{4}, size_t{5}, size_t{1000}, stream.size()}) {
		FrameReader reader;
		EXPECT_EQ(read_all(reader, stream, piece), sent) << "pieces of " << piece;
		EXPECT_FALSE(reader.broken());
	}
}

TEST(FrameReader, GoesOnForMuchLongerThanItsBuffer)
{
	FrameReader reader;
	const Bytes one = on_stream(frame(1, 2, 3, 9014));
	Bytes stream;
	for (int i = 0; i < 200; i++)
		stream.insert(stream.end(), one.begin(), one.end());
	EXPECT_EQ(read_all(reader, stream, 65536).size(), 200u);
}

TEST(FrameReader, RefusesLengthsThatNoFrameHas)
{
	for (const size_t length : {size_t{0}, kMaxFrame + 1, size_t{0xffffffff}}) {
		FrameReader reader;
		Bytes stream = on_stream(frame(1, 2, 3));
		Bytes bad(kLengthSize);
		put_length(std::span<std::byte, kLengthSize>(bad), length);
		stream.insert(stream.end(), bad.begin(), bad.end());
		EXPECT_EQ(read_all(reader, stream, stream.size()).size(), 1u);
		EXPECT_TRUE(reader.broken()) << length;
		EXPECT_FALSE(reader.next());
	}
}

} // namespace
} // namespace tern::wire
