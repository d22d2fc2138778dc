// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/framing.h"

#include <cstring>

namespace tern::wire {

/* Holds many frames, to read them by one system call. */
constexpr size_t kBufferSize = 256 * 1024;
static_assert(kBufferSize >= kLengthSize + kMaxFrame);

static size_t get_length(const std::byte *from)
{
	size_t length = 0;
	for (size_t i = 0; i < kLengthSize; i++)
		length = length << 8 | std::to_integer<size_t>(from[i]);
	return length;
}

void put_length(std::span<std::byte, kLengthSize> to, size_t length)
{
	for (size_t i = 0; i < kLengthSize; i++)
		to[i] = static_cast<std::byte>(length >> (8 * (kLengthSize - 1 - i)));
}

FrameReader::FrameReader() : buffer_(kBufferSize) {}

std::span<std::byte> FrameReader::room()
{
	/* Usually less than one frame is left, so moving it is cheap. */
	if (begin_ != 0) {
		std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
		end_ -= begin_;
		begin_ = 0;
	}
	return std::span(buffer_).subspan(end_);
}

std::optional<Frame> FrameReader::next()
{
	const size_t there = end_ - begin_;
	if (broken_ || there < kLengthSize)
		return std::nullopt;
	const size_t length = get_length(buffer_.data() + begin_);
	if (length == 0 || length > kMaxFrame) {
		broken_ = true;
		return std::nullopt;
	}
	if (there < kLengthSize + length)
		return std::nullopt;
	const Frame frame(buffer_.data() + begin_ + kLengthSize, length);
	begin_ += kLengthSize + length;
	return frame;
}

} // namespace tern::wire
