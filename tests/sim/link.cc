// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/link.h"

#include <algorithm>

namespace tern::sim {

bool Link::send(std::span<const std::byte> bytes)
{
	if (queued_ >= config.queue) {
		counts_.refused++;
		refused_ = true;
		return false;
	}
	counts_.sent++;
	queued_++;
	busy_until_ = std::max(busy_until_, loop_.now()) + bytes.size() * config.ns_per_kib / 1024;
	loop_.at(busy_until_, [this, frame = Frame(bytes.begin(), bytes.end())]() mutable {
		depart(std::move(frame));
	});
	return true;
}

/* The last bit has left: there is room for another frame. */
void Link::depart(Frame frame)
{
	queued_--;
	const Faults &f = config.faults;
	if (rng_.chance(f.loss, 1000)) {
		counts_.lost++;
	} else {
		if (rng_.chance(f.duplicate, 1000)) {
			counts_.duplicated++;
			travel(frame);
		}
		if (rng_.chance(f.corrupt, 1000)) {
			counts_.corrupted++;
			frame[rng_.below(frame.size())] ^=
			        static_cast<std::byte>(1 << rng_.below(8));
		}
		travel(std::move(frame));
	}
	if (refused_ && on_room) {
		refused_ = false;
		on_room();
	}
}

void Link::travel(Frame frame)
{
	uint64_t delay = config.latency;
	if (rng_.chance(config.faults.reorder, 1000)) {
		counts_.reordered++;
		delay += rng_.between(1, config.max_reorder);
	}
	loop_.after(delay, [this, frame = std::move(frame)] {
		counts_.delivered++;
		sink_(frame);
	});
}

} // namespace tern::sim
