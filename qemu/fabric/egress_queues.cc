// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/egress_queues.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tern::fabric {

namespace {
/* Bytes in a turn of a queue with weight 1. */
constexpr uint64_t kQuantum = 1518;
} // namespace

EgressQueues::EgressQueues(const Weights &weights) : weights_(weights)
{
	for (unsigned priority = 0; priority < kPriorities; priority++)
		strict_ |= static_cast<uint8_t>(!weights[priority] << priority);
}

void EgressQueues::Queue::integrate(uint64_t now)
{
	byte_ns += bytes * (now - changed);
	changed = now;
}

void EgressQueues::push(FramePtr frame, uint64_t now)
{
	Queue &queue = queues_[frame->priority];
	queue.integrate(now);
	queue.bytes += frame->size;
	queue.stats.frames++;
	queue.stats.bytes += frame->size;
	queue.stats.max_bytes = std::max(queue.stats.max_bytes, queue.bytes);
	filled_ |= static_cast<uint8_t>(1u << frame->priority);
	queue.frames.push_back(std::move(frame));
}

FramePtr EgressQueues::take(unsigned priority, uint64_t now)
{
	Queue &queue = queues_[priority];
	queue.integrate(now);
	FramePtr frame = queue.frames.pop_front();
	queue.bytes -= frame->size;
	if (queue.frames.empty())
		filled_ &= static_cast<uint8_t>(~(1u << priority));
	else
		queue.frames.front().prefetch();
	return frame;
}

FramePtr EgressQueues::pop(uint8_t held, uint64_t now)
{
	const uint8_t ready = filled_ & static_cast<uint8_t>(~held);
	if (const unsigned strict = ready & strict_)
		return take(static_cast<unsigned>(std::bit_width(strict)) - 1, now);
	return ready ? take_weighted(ready, now) : nullptr;
}

/* Implements deficit round robin (Shreedhar and Varghese, 1995). */
FramePtr EgressQueues::take_weighted(uint8_t ready, uint64_t now)
{
	for (;;) {
		Queue &queue = queues_[turn_];
		if (ready >> turn_ & 1 && queue.frames.front().size <= queue.deficit) {
			queue.deficit -= queue.frames.front().size;
			return take(turn_, now);
		}
		if (queue.frames.empty())
			queue.deficit = 0;
		turn_ = (turn_ + 1) % kPriorities;
		if (ready >> turn_ & 1)
			queues_[turn_].deficit += weights_[turn_] * kQuantum;
	}
}

} // namespace tern::fabric
