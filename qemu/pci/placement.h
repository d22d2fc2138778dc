/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <sched.h>

namespace tern {

/**
 * On which processor a thread runs that works hand in hand with others. Where there is none to
 * spare, two that wait for one another do best on the same: waking the other is then a matter of
 * 3 us, and of 15 where it takes an interrupt to another processor, of a virtual machine above
 * all. The kernel cannot know and spreads them. All times in ns, of one steady clock.
 */
class Placement {
public:
	/** Of the calling thread, where it may run by now. */
	Placement();

	/** Whether each processor has one of so many hosts that could use it for its programs. */
	bool crowded(size_t hosts) const
	{
		return hosts >= static_cast<size_t>(CPU_COUNT(&allowed_));
	}
	/** The thread goes to where one that it works with has slept, and stays; not if it may not
	 * run there, nor when somebody else has placed it meanwhile, nor all the time. */
	void join(uint32_t cpu, uint64_t now);
	/** The thread is free again if it has not joined anybody for a while. */
	void leave(uint64_t now)
	{
		if (joined_ && now - renewed_ > kPatience)
			set(allowed_);
	}

private:
	static constexpr uint64_t kPatience = 100'000'000;
	static constexpr uint64_t kPause = 1'000'000;

	void set(const cpu_set_t &to);

	cpu_set_t allowed_;
	cpu_set_t now_; /* as this has set it last */
	bool joined_ = false;
	uint64_t renewed_ = 0;
	uint64_t moved_ = 0;
};

} // namespace tern
