// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/event_queue.h"

#include <cstring>

namespace tern {

using namespace hw;

bool EventQueue::write(Host &host, tern_hw_event type, uint32_t id)
{
	const uint64_t offset = uint64_t{pi_ & ((1u << log_size_) - 1)} * sizeof(tern_hw_eqe);
	const auto run = pages_.at(host.tables, host.memory, offset);
	if (!run)
		return false;

	tern_hw_eqe eqe{};
	eqe.id = id;
	eqe.type = static_cast<uint8_t>(type);
	eqe.phase = !((pi_ >> log_size_) & 1);
	if (host.falsifier.due())
		host.observer.falsified(
		        "EQE of vector", vector_,
		        host.falsifier.change(std::as_writable_bytes(std::span(&eqe, 1))));
	uint64_t half[2];
	static_assert(sizeof(half) == sizeof(eqe));
	std::memcpy(half, &eqe, sizeof(half));
	if (!host.memory.store_release(run->iova, half[0]) ||
	    !host.memory.store_release(run->iova + 8, half[1]))
		return false;

	pi_++;
	if (armed_) {
		armed_ = false;
		host.interrupts.raise(vector_);
	}
	return true;
}

bool EventQueue::post(Host &host, tern_hw_event type, uint32_t id)
{
	if (full()) {
		host.stats.add(TERN_STAT_EQ_OVERRUNS);
		waiting_.emplace(type, id);
		return true;
	}
	return write(host, type, id);
}

bool EventQueue::arm(Host &host, uint32_t ci)
{
	ci_ = ci;
	armed_ = true;
	while (!waiting_.empty() && !full()) {
		const auto [type, id] = *waiting_.begin();
		waiting_.erase(waiting_.begin());
		if (!write(host, type, id))
			return false;
	}
	if (armed_ && pi_ != ci_) {
		armed_ = false;
		host.interrupts.raise(vector_);
	}
	return true;
}

void EventQueue::forget(std::span<const tern_hw_event> events, uint32_t id)
{
	for (const tern_hw_event type : events)
		waiting_.erase({type, id});
}

} // namespace tern
