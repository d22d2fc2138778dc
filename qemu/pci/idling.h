/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the engine does instead of sleeping when it has nothing to do. */
#pragma once

#include <algorithm>
#include <cstdint>

namespace tern {

/*
 * Two ways to be idle that pay at some times and cost at others, which only trying tells.
 *
 * Polling: sleeping costs the waker a system call and the work a wake-up, polling takes a
 * processor from whoever could use it: where processors are scarce, from just those who would
 * make the work.
 *
 * Dozing: sleeping for a moment without asking anybody to be woken. When work comes all the
 * time, who makes it goes on meanwhile undisturbed, without a doorbell to ring for each piece
 * and without losing the processor to who is woken by it. Where one waits for another's answer
 * the moment is lost.
 */

/** For how long the engine polls, ns. */
constexpr uint64_t kPollTime = 25'000;
/** For how long it dozes, ns, and how much work makes that worth while. */
constexpr uint64_t kDozeTime = 30'000;
constexpr unsigned kWorthADoze = 4;

/**
 * Whether to do what may pay: on as long as it does; after a failure not for a while, twice as
 * long each time unless it has paid many times in a row.
 */
class Habit {
public:
	bool now() { return pays_ || ++passed_ >= pause_; }
	void learn(bool paid)
	{
		pays_ = paid;
		passed_ = 0;
		if (!paid) {
			streak_ = 0;
			pause_ = std::min(2 * pause_, kLongestPause);
		} else if (++streak_ == kProof) {
			pause_ = 1;
		}
	}

private:
	static constexpr unsigned kProof = 16;
	static constexpr unsigned kLongestPause = 4096;

	bool pays_ = false;
	unsigned streak_ = 0;
	unsigned passed_ = 0;
	unsigned pause_ = 1;
};

} // namespace tern
