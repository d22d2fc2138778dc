// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/formats/payload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace tern {
namespace {

constexpr size_t kSize = 10;

class PayloadPieces : public ::testing::Test {
protected:
	PayloadPieces()
	{
		for (size_t i = 0; i < kSize; i++)
			bytes_[i] = static_cast<std::byte>(i);
	}
	std::vector<std::byte> read(const Payload &payload, size_t room = kSize) const
	{
		std::vector<std::byte> to(room, std::byte{0xee});
		payload.copy_to(to);
		to.resize(std::min(room, payload.size()));
		return to;
	}
	std::vector<std::byte> bytes(size_t from, size_t to = kSize) const
	{
		return {bytes_.begin() + static_cast<std::ptrdiff_t>(from),
		        bytes_.begin() + static_cast<std::ptrdiff_t>(to)};
	}

	std::array<std::byte, kSize> bytes_;
	/* One of them holds nothing. */
	std::array<Payload::Piece, 4> pieces_{
	        Payload::Piece(bytes_).first(3), Payload::Piece(bytes_).subspan(3, 0),
	        Payload::Piece(bytes_).subspan(3, 4), Payload::Piece(bytes_).subspan(7)};
};

TEST_F(PayloadPieces, SkipsSomeBytes)
{
	const Payload whole{Payload::Piece(bytes_)};
	const Payload payload{std::span<const Payload::Piece>(pieces_)};
	for (size_t n = 0; n <= kSize; n++) {
		EXPECT_EQ(payload.skip(n).size(), kSize - n);
		EXPECT_EQ(read(payload.skip(n)), bytes(n));
		EXPECT_EQ(read(whole.skip(n)), bytes(n));
		EXPECT_EQ(read(payload.skip(n / 2).skip(n - n / 2)), bytes(n));
	}
	EXPECT_TRUE(payload.skip(kSize + 1).empty());
	EXPECT_TRUE(Payload().skip(1).empty());
}

TEST_F(PayloadPieces, FirstBytes)
{
	const Payload payload{std::span<const Payload::Piece>(pieces_)};
	for (size_t n = 0; n <= kSize + 1; n++) {
		const Payload some = payload.first(n);
		EXPECT_EQ(some.size(), std::min(n, kSize));
		size_t sum = 0;
		for (size_t i = 0; i < some.pieces(); i++)
			sum += some.piece(i).size();
		EXPECT_EQ(sum, some.size());
		EXPECT_EQ(read(some), bytes(0, some.size()));
		EXPECT_EQ(some.empty(), n == 0);
	}
	EXPECT_TRUE(Payload().first(3).empty());
}

/* Any part of any part. */
TEST_F(PayloadPieces, Parts)
{
	const Payload payload{std::span<const Payload::Piece>(pieces_)};
	for (size_t from = 0; from <= kSize; from++)
		for (size_t to = from; to <= kSize; to++) {
			EXPECT_EQ(read(payload.skip(from).first(to - from)), bytes(from, to));
			EXPECT_EQ(read(payload.first(to).skip(from)), bytes(from, to));
			EXPECT_EQ(read(payload.first(to).first(from)), bytes(0, from));
		}
}

TEST_F(PayloadPieces, ThatMove)
{
	const Payload payload{std::span<const Payload::Piece>(pieces_)};
	const Payload part = payload.skip(1).first(7);
	const auto expected = read(part);
	const auto moved = bytes_;
	for (Payload::Piece &piece : pieces_)
		piece = std::span(moved).subspan(static_cast<size_t>(piece.data() - bytes_.data()),
		                                 piece.size());
	bytes_.fill(std::byte{0xee});
	EXPECT_EQ(read(part), expected);
}

TEST_F(PayloadPieces, AsMuchAsThereIsRoomFor)
{
	const Payload payload{std::span<const Payload::Piece>(pieces_)};
	for (size_t room = 0; room <= kSize; room++)
		EXPECT_EQ(read(payload, room), bytes(0, room));
}

} // namespace
} // namespace tern
