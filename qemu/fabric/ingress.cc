// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/ingress.h"

#include <algorithm>

namespace tern::fabric {

namespace {
constexpr uint64_t kSecond = 1'000'000'000;
constexpr double kMostOnTheWay = 1e15; /* bytes */
constexpr uint64_t kMaxPauseBits = kPauseQuantum * kMaxQuanta;
} // namespace

uint64_t headroom_for(const LinkConfig &link)
{
	/* As a double: the product of the largest rate and delay exceeds 64 bits. */
	const double on_the_way = static_cast<double>(link.rate) / 8 *
	                          static_cast<double>(2 * (link.delay + link.jitter)) / kSecond;
	return static_cast<uint64_t>(std::min(on_the_way, kMostOnTheWay)) + kPauseFrameSize +
	       3 * kMaxEthFrame;
}

bool Ingress::take(uint8_t priority, uint64_t size)
{
	if (held_[priority] + size > config_.xoff + config_.headroom) {
		dropped_++;
		return false;
	}
	held_[priority] += size;
	if (held_[priority] > config_.xoff && !repeat_at_[priority])
		pause(priority);
	return true;
}

void Ingress::release(uint8_t priority, uint64_t size)
{
	held_[priority] -= size;
	if (repeat_at_[priority] && held_[priority] <= config_.xon) {
		repeat_at_[priority] = 0;
		port_.pause_peer(priority, 0);
	}
}

/* A priority that is paused holds more than xon, so the pause is still needed. */
void Ingress::link_returned()
{
	for (uint8_t priority = 0; priority < kPriorities; priority++) {
		if (repeat_at_[priority])
			pause(priority);
	}
}

/* Pauses the sender, and repeats the pause after half of its time while the buffer is too full. */
void Ingress::pause(uint8_t priority)
{
	const uint64_t time = kMaxPauseBits * kSecond / port_.link.rate;
	port_.pause_peer(priority, kMaxQuanta);
	repeat_at_[priority] = loop_.now() + time / 2;
	loop_.at(repeat_at_[priority], [this, priority] {
		if (repeat_at_[priority] == loop_.now())
			pause(priority);
	});
}

uint32_t CopyCounts::add(uint32_t copies)
{
	if (unused_.empty()) {
		left_.push_back(copies);
		return static_cast<uint32_t>(left_.size()) - 1;
	}
	const uint32_t number = unused_.back();
	unused_.pop_back();
	left_[number] = copies;
	return number;
}

bool CopyCounts::remove(uint32_t number)
{
	if (--left_[number])
		return false;
	unused_.push_back(number);
	return true;
}

} // namespace tern::fabric
