// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/ingress.h"

namespace tern::fabric {

namespace {
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kMaxPauseBits = kPauseQuantum * kMaxQuanta;
} // namespace

uint64_t headroom_for(const LinkConfig &link)
{
	const uint64_t on_the_way = link.rate / 8 * (2 * link.delay) / kSecond;
	return on_the_way + kPauseFrameSize + 3 * kMaxEthFrame;
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

} // namespace tern::fabric
