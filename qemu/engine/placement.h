/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <sched.h>

namespace tern {

/**
 * Chooses the processor of a thread that exchanges work with other threads. On a host without spare
 * processors, two threads that wait for each other run best on the same one: a wake-up then costs 3
 * us, against 15 us for an interrupt to another processor (measured in virtual machines). The
 * kernel's scheduler cannot know that and spreads them. All times in ns of one monotonic clock.
 */
class Placement {
public:
	/** Records the affinity of the calling thread. */
	Placement();

	/** Whether there is no more than one processor for each host. */
	bool crowded(size_t hosts) const
	{
		return hosts >= static_cast<size_t>(CPU_COUNT(&allowed_));
	}
	/** Moves the thread to processor @cpu, where a thread it exchanges work with has slept.
	 * Does nothing if the initial affinity excludes @cpu, if another program has changed the
	 * affinity, or if the thread has moved within kMinMoveInterval. */
	void join(uint32_t cpu, uint64_t now);
	/** Restores the initial affinity if join() was not called for kReleaseTime. */
	void leave(uint64_t now)
	{
		if (joined_ && now - last_join_ > kReleaseTime)
			set(allowed_);
	}

private:
	static constexpr uint64_t kReleaseTime = 100'000'000;
	static constexpr uint64_t kMinMoveInterval = 1'000'000;

	void set(const cpu_set_t &to);

	cpu_set_t allowed_;
	cpu_set_t current_; /* as last set by this object */
	bool joined_ = false;
	uint64_t last_join_ = 0;
	uint64_t last_move_ = 0;
};

} // namespace tern
