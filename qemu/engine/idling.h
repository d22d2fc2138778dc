/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Idle policies: what the engine does before it sleeps. */
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <optional>
#include <utility>

#include "qemu/shm/monotonic.h"

namespace tern {

/*
 * Two alternatives to sleeping at once. Whether they help depends on the load, so each is
 * controlled by an AdaptivePolicy.
 *
 * Polling avoids the waker's system call and the wake-up latency, but occupies a processor. Where
 * processors are scarce, it takes time from the guests that would produce the work.
 *
 * A short sleep does not ask for a wake-up. Under a steady load the producers continue undisturbed
 * meanwhile: they ring no bell for each frame and are not preempted by the thread they would wake.
 * Where a peer waits for a reply, the sleep only adds latency.
 */

/** Duration of polling, ns. */
constexpr uint64_t kPollTime = 25'000;
/** Duration of a short sleep, ns, and the frames that must arrive for it to count as useful. */
constexpr uint64_t kShortSleepTime = 30'000;
constexpr unsigned kUsefulSleep = 4;

/**
 * Decides whether to use an idle policy. Uses it while it succeeds. After a failure it skips the
 * policy for twice as many times as before, up to kMaxSkips; kProof successes in a row reset the
 * count.
 */
class AdaptivePolicy {
public:
	bool should_try() { return succeeding_ || ++skipped_ >= skips_; }
	void record(bool success)
	{
		succeeding_ = success;
		skipped_ = 0;
		if (!success) {
			streak_ = 0;
			skips_ = std::min(2 * skips_, kMaxSkips);
		} else if (++streak_ == kProof) {
			skips_ = 1;
		}
	}

private:
	static constexpr unsigned kProof = 16;
	static constexpr unsigned kMaxSkips = 4096;

	bool succeeding_ = false;
	unsigned streak_ = 0;
	unsigned skipped_ = 0;
	unsigned skips_ = 1;
};

/** What the engine's thread does when it has no work, before it sleeps. */
class Idling {
public:
	/**
	 * Polls or sleeps for a short time, if that is likely to be better than to sleep until a
	 * wake-up. Returns true if the caller is to look for work: polling has found some, or the
	 * short sleep is over. Returns false if the caller is to sleep until a wake-up.
	 *
	 * @traffic: frames sent and received since the last call.
	 * @has_work: returns whether there is work.
	 * @time_left: returns the time until the next deadline, ns; none if there is no deadline.
	 */
	template <typename HasWork, typename TimeLeft>
	bool wait(unsigned traffic, HasWork has_work, TimeLeft time_left)
	{
		if (std::exchange(short_slept_, false))
			short_sleeping_.record(traffic >= kUsefulSleep);
		if (polling_.should_try() && poll(has_work, time_left()))
			return true;
		short_slept_ = short_sleeping_.should_try() && short_sleep(time_left());
		return short_slept_;
	}

private:
	/** Returns true if there is work. */
	template <typename HasWork>
	bool poll(HasWork has_work, std::optional<uint64_t> time_left)
	{
		uint64_t now = monotonic_ns();
		const uint64_t end = now + std::min(time_left.value_or(kPollTime), kPollTime);
		while (!has_work() && now < end) {
			__builtin_ia32_pause();
			now = monotonic_ns();
		}
		polling_.record(now < end);
		return now < end;
	}

	/** Returns false if the next deadline does not leave time for it. */
	static bool short_sleep(std::optional<uint64_t> time_left)
	{
		if (time_left.value_or(~uint64_t{0}) <= kShortSleepTime)
			return false;
		const timespec moment{.tv_sec = 0, .tv_nsec = kShortSleepTime};
		nanosleep(&moment, nullptr);
		return true;
	}

	AdaptivePolicy polling_;
	AdaptivePolicy short_sleeping_;
	bool short_slept_ = false;
};

} // namespace tern
