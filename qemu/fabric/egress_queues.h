/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "qemu/fabric/classify.h"
#include "qemu/fabric/frame.h"
#include "qemu/rnic/formats/pause.h"

namespace tern::fabric {

/** Shares of the link, by priority. A queue with weight 0 comes before all of lower priority and
 * before all with a weight; the others share what is left in proportion. */
using Weights = std::array<uint32_t, kPriorities>;

/** The frames that wait at a port, a queue for each priority. */
class EgressQueues {
public:
	struct Stats {
		uint64_t frames = 0; /* that entered */
		uint64_t bytes = 0;
		uint64_t dropped = 0; /* no room */
		uint64_t marked = 0;  /* with Congestion Experienced */
		uint64_t max_bytes = 0;
	};

	explicit EgressQueues(const Weights &weights);

	void push(FramePtr frame, uint64_t now);
	/** The next frame of those whose bit in @held is clear; null if there is none. */
	FramePtr pop(uint8_t held, uint64_t now);
	/** Prefetches the frame that is likely to be next. */
	void prefetch() const
	{
		if (filled_)
			queues_[std::bit_width(filled_) - 1].frames.front().prefetch();
	}
	uint64_t bytes(uint8_t priority) const { return queues_[priority].bytes; }
	/** Returns the integral of bytes() over time, in byte nanoseconds, up to @now. */
	uint64_t byte_ns(uint8_t priority, uint64_t now) const
	{
		const Queue &queue = queues_[priority];
		return queue.byte_ns + queue.bytes * (now - queue.changed);
	}
	Stats &stats(uint8_t priority) { return queues_[priority].stats; }
	const Stats &stats(uint8_t priority) const { return queues_[priority].stats; }

private:
	struct Queue {
		FrameList frames;
		uint64_t bytes = 0;
		uint64_t deficit = 0; /* bytes that may still go in this turn */
		uint64_t byte_ns = 0; /* integral of bytes, up to changed */
		uint64_t changed = 0; /* ns */
		Stats stats;

		void integrate(uint64_t now);
	};

	FramePtr take(unsigned priority, uint64_t now);
	FramePtr take_weighted(uint8_t ready, uint64_t now);

	uint8_t strict_ = 0; /* priorities without a weight */
	uint8_t filled_ = 0; /* ... with frames */
	unsigned turn_ = 0;  /* among those with a weight */
	std::array<Queue, kPriorities> queues_;
	Weights weights_;
};

} // namespace tern::fabric
