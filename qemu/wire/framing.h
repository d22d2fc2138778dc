/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The framing of QEMU's stream netdev: each Ethernet frame follows its length in four bytes,
 * big-endian.
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
/* Maximum frame of QEMU (a segment for offloading, with headers). */
constexpr size_t kMaxFrame = 4096 + 65536;
constexpr size_t kMinFrame = 14;

/** Extracts frames from a byte stream. */
class FrameReader {
public:
	FrameReader();

	/** Room for more input; never empty after next() has returned none. */
	std::span<std::byte> room();
	/** @size bytes were read into room(). */
	void filled(size_t size) { end_ += size; }

	/** The next complete frame; valid until room() is called. */
	std::optional<Frame> next();
	/** The stream has an invalid length; no more frames are returned. */
	bool broken() const { return broken_; }

private:
	std::vector<std::byte> buffer_;
	size_t begin_ = 0;
	size_t end_ = 0;
	bool broken_ = false;
};

void put_length(std::span<std::byte, kLengthSize> to, size_t length);

} // namespace tern::wire
