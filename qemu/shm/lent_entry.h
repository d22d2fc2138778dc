/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The entry of a lent packet: its head, and where its payload is. */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "qemu/shm/segment.h"

namespace tern::shm {

/** A range in a RAM block that a host shares with the others. */
struct RamRange {
	uint32_t block;
	uint32_t size;
	uint64_t offset;
};

constexpr size_t kMaxRanges = 32;
constexpr size_t kMaxHead = 512; /* bytes before the payload */
/* The maximum payload of an entry, in bytes: that of a burst. */
constexpr size_t kMaxPayload = 64 << 10;

/** The start of the entry; the ranges and the head follow. */
struct LentHeader {
	uint32_t ranges;
	uint32_t head_size;
	uint32_t segment; /* segment size of a burst; 0: a single packet */
	uint32_t reserved;
};
static_assert(sizeof(LentHeader) == 16);

/** A lent entry whose sizes are valid. It refers to the bytes it was made from. */
class LentEntry {
public:
	/** None if @bytes are no lent entry. */
	static std::optional<LentEntry> parse(std::span<const std::byte> bytes);

	std::span<const std::byte> head() const { return head_; }
	uint32_t segment() const { return segment_; }
	/** Bytes of payload, at most kMaxPayload. */
	size_t size() const { return size_; }
	/** Number of packets. */
	uint32_t packets() const;
	/** Finds the payload in the blocks of its host; returns its pieces in @pieces, or none if a
	 * range is not in its block. */
	using Pieces = std::array<std::span<const std::byte>, kMaxRanges>;
	std::optional<std::span<std::span<const std::byte>>>
	find(const std::vector<Mapping> &blocks, Pieces &pieces) const;

private:
	RamRange range(size_t i) const;

	std::span<const std::byte> ranges_;
	std::span<const std::byte> head_;
	uint32_t segment_ = 0;
	size_t size_ = 0;
};

} // namespace tern::shm
