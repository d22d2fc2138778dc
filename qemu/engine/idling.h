/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Idle policies: what the engine does before it sleeps. */
#pragma once

#include <algorithm>
#include <cstdint>

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

} // namespace tern
