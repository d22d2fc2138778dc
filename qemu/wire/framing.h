/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How QEMU's stream netdev puts Ethernet frames on a byte stream: each behind its length
 * in four bytes, big-endian.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tern::wire {

using Frame = std::span<const std::byte>;

constexpr size_t kLengthSize = 4;
/* What QEMU sends at most (a segment for offloading with its headers). */
constexpr size_t kMaxFrame = 4096 + 65536;
constexpr size_t kMinFrame = 14;

/** Finds the frames in a stream that arrives in pieces of any size. */
class FrameReader {
public:
	FrameReader();

	/** Where the next piece goes: never empty after next() has returned nothing. */
	std::span<std::byte> room();
	/** @size bytes came in. */
	void filled(size_t size) { end_ += size; }

	/** The next whole frame, if it is there; valid until room() is called. */
	std::optional<Frame> next();
	/** The stream has a length that no frame can have. Nothing more comes out of it. */
	bool broken() const { return broken_; }

private:
	std::vector<std::byte> buffer_;
	size_t begin_ = 0;
	size_t end_ = 0;
	bool broken_ = false;
};

void put_length(std::span<std::byte, kLengthSize> to, size_t length);

} // namespace tern::wire
