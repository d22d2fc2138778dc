/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <sys/uio.h>
#include <vector>

#include "qemu/wire/framing.h"

namespace tern::wire {

/** Frames waiting to be written to one port, already with their lengths. */
class OutputQueue {
public:
	/** @capacity in bytes, a power of two. */
	explicit OutputQueue(size_t capacity) : ring_(capacity) {}

	/** Returns false if the frame does not fit. */
	bool push(Frame frame);

	bool empty() const { return head_ == tail_; }
	size_t size() const { return tail_ - head_; }
	/** Bytes written so far. */
	uint64_t written() const { return head_; }

	/** All waiting bytes, in order. */
	std::array<iovec, 2> pieces();
	/** The first @size bytes were written. */
	void written(size_t size) { head_ += size; }

private:
	void append(std::span<const std::byte> bytes);

	std::vector<std::byte> ring_;
	size_t head_ = 0; /* free-running */
	size_t tail_ = 0;
};

} // namespace tern::wire
