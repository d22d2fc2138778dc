/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "qemu/fabric/event_loop.h"

namespace tern::fabric {

/**
 * Lets an event loop follow a clock that passes by itself.
 *
 * The loop falls behind while its process waits for a processor. When it catches up, it runs each
 * event at the time for which the event was scheduled. A port that had time for ten frames sends
 * all ten of them, so its average rate is correct.
 */
class RealTime {
public:
	RealTime(EventLoop &loop, Clock &clock) : loop_(loop), clock_(clock), start_(clock.now()) {}

	/** Runs all events that are due. Does nothing if it is called by an event. */
	void advance()
	{
		if (advancing_)
			return;
		advancing_ = true;
		loop_.run_for(elapsed() - loop_.now());
		advancing_ = false;
	}
	/** Returns the time until the next event, in ns; 0 if it is due, none if there is none. */
	std::optional<uint64_t> until_next() const
	{
		const auto next = loop_.next();
		const uint64_t now = elapsed();
		return next ? std::optional(*next - std::min(*next, now)) : std::nullopt;
	}

private:
	uint64_t elapsed() const { return clock_.now() - start_; }

	EventLoop &loop_;
	Clock &clock_;
	const uint64_t start_;
	bool advancing_ = false;
};

} // namespace tern::fabric
