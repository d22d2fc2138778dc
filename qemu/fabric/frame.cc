// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/frame.h"

#include <memory>
#include <new>

namespace tern::fabric {

void FramePool::grow(uint16_t size_class)
{
	constexpr size_t kCacheLine = Frame::kCacheLine;
	const size_t slot = stride(size_class);
	const size_t count = kChunk / slot;
	chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(count * slot + kCacheLine));
	void *at = chunks_.back().get();
	size_t room = count * slot + kCacheLine;
	std::byte *first = static_cast<std::byte *>(std::align(kCacheLine, count * slot, at, room));
	for (size_t i = count; i-- > 0;) {
		Frame *frame = new (first + i * slot) Frame;
		frame->pool = this;
		frame->size_class = size_class;
		unused_[size_class].push_back(frame);
	}
	made_ += count;
}

} // namespace tern::fabric
