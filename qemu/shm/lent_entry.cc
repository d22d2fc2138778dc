// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/lent_entry.h"

#include <cstring>

#include "qemu/rnic/formats/burst.h"

namespace tern::shm {

std::optional<LentEntry> LentEntry::parse(std::span<const std::byte> bytes)
{
	LentHeader header;
	if (bytes.size() < sizeof(header))
		return std::nullopt;
	std::memcpy(&header, bytes.data(), sizeof(header));
	bytes = bytes.subspan(sizeof(header));
	const size_t ranges = header.ranges * sizeof(RamRange);
	if (!header.ranges || header.ranges > kMaxRanges || header.head_size > kMaxHead ||
	    bytes.size() != ranges + header.head_size)
		return std::nullopt;

	LentEntry entry;
	entry.ranges_ = bytes.first(ranges);
	entry.head_ = bytes.subspan(ranges);
	entry.segment_ = header.segment;
	for (size_t i = 0; i < header.ranges; i++)
		entry.size_ += entry.range(i).size;
	return entry.size_ <= kMaxPayload ? std::optional(entry) : std::nullopt;
}

RamRange LentEntry::range(size_t i) const
{
	RamRange range;
	std::memcpy(&range, ranges_.data() + i * sizeof(range), sizeof(range));
	return range;
}

uint32_t LentEntry::packets() const
{
	return segment_ ? segments_of(size_, segment_) : 1;
}

std::optional<std::span<std::span<const std::byte>>>
LentEntry::find(const std::vector<Mapping> &blocks, Pieces &pieces) const
{
	const size_t count = ranges_.size() / sizeof(RamRange);
	for (size_t i = 0; i < count; i++) {
		const RamRange range = this->range(i);
		if (range.block >= blocks.size())
			return std::nullopt;
		const auto block = blocks[range.block].bytes();
		if (range.offset > block.size() || range.size > block.size() - range.offset)
			return std::nullopt;
		pieces[i] = block.subspan(range.offset, range.size);
	}
	return std::span(pieces).first(count);
}

} // namespace tern::shm
