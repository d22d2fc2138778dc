/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "qemu/rnic/queues/completion_counter.h"

namespace tern {

/** The completion counters of a QP, at most one for each of its operations (TERN_COMP_*). */
class AttachedCounters {
public:
	/** Whether any of @ops has a counter. */
	bool has(uint32_t ops) const { return ops_ & ops; }
	/** @counter counts @ops, which have no counter yet. */
	void attach(CompletionCounter &counter, uint32_t ops)
	{
		ops_ |= ops;
		for (size_t i = 0; i < counters_.size(); i++) {
			if (!(ops >> i & 1))
				continue;
			counters_[i] = &counter;
			counter.users++;
		}
	}
	void detach_all()
	{
		ops_ = 0;
		for (CompletionCounter *&counter : counters_) {
			if (counter)
				counter->users--;
			counter = nullptr;
		}
	}
	/** Counts a request of operation @op, which has a counter. Returns false if the counter's
	 * record cannot be written. */
	bool count(HostMemory &memory, uint32_t op, bool success, uint64_t bytes) const
	{
		return counters_[static_cast<size_t>(std::countr_zero(op))]->count(memory, success,
		                                                                   bytes);
	}

private:
	uint32_t ops_ = 0;
	std::array<CompletionCounter *, 6> counters_{}; /* by the bit of the operation */
};

} // namespace tern
