// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/output_queue.h"

#include <algorithm>
#include <cstring>

namespace tern::wire {

bool OutputQueue::push(Frame frame)
{
	if (kLengthSize + frame.size() > ring_.size() - size())
		return false;
	std::array<std::byte, kLengthSize> length;
	put_length(length, frame.size());
	append(length);
	append(frame);
	return true;
}

void OutputQueue::append(std::span<const std::byte> bytes)
{
	const size_t at = tail_ & (ring_.size() - 1);
	const size_t first = std::min(bytes.size(), ring_.size() - at);
	std::memcpy(ring_.data() + at, bytes.data(), first);
	std::memcpy(ring_.data(), bytes.data() + first, bytes.size() - first);
	tail_ += bytes.size();
}

std::array<iovec, 2> OutputQueue::pieces()
{
	const size_t at = head_ & (ring_.size() - 1);
	const size_t first = std::min(size(), ring_.size() - at);
	return {iovec{ring_.data() + at, first}, iovec{ring_.data(), size() - first}};
}

} // namespace tern::wire
