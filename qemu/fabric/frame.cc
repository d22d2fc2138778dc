// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/frame.h"

#include <algorithm>
#include <new>

namespace tern::fabric {

void FramePool::grow(std::vector<Frame *> &unused, size_t capacity)
{
	constexpr size_t kCacheLine = Frame::kCacheLine;
	const size_t stride = (sizeof(Frame) + capacity + kCacheLine - 1) & ~(kCacheLine - 1);
	const size_t count = std::max<size_t>(kChunk / stride, 1);
	chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(count * stride + kCacheLine));
	void *at = chunks_.back().get();
	size_t room = count * stride + kCacheLine;
	std::byte *first =
	        static_cast<std::byte *>(std::align(kCacheLine, count * stride, at, room));
	for (size_t i = count; i-- > 0;) {
		Frame *frame = new (first + i * stride) Frame;
		frame->pool = this;
		frame->capacity = static_cast<uint16_t>(capacity);
		unused.push_back(frame);
	}
	made_ += count;
}

} // namespace tern::fabric
