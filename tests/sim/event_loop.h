/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "qemu/rnic/ports.h"

namespace tern::sim {

/** Simulated time: events happen in order of (time, order of scheduling), and time passes only
 * between them. */
class EventLoop : public Clock {
public:
	using Action = std::function<void()>;

	uint64_t now() override { return now_; }

	void at(uint64_t when, Action action)
	{
		heap_.push_back({std::max(when, now_), sequence_++, std::move(action)});
		std::push_heap(heap_.begin(), heap_.end(), later);
	}
	void after(uint64_t ns, Action action) { at(now_ + ns, std::move(action)); }

	/** Lets the next event happen; false when there is none. */
	bool step()
	{
		if (heap_.empty())
			return false;
		std::pop_heap(heap_.begin(), heap_.end(), later);
		Event event = std::move(heap_.back());
		heap_.pop_back();
		now_ = event.when;
		event.action();
		return true;
	}

	/** Steps until @done() holds; false when time @limit comes first, or there is nothing left
	 * to happen. */
	template <typename Done>
	bool run_until(uint64_t limit, Done done)
	{
		while (!done()) {
			if (heap_.empty() || heap_.front().when > limit)
				return false;
			step();
		}
		return true;
	}
	/** All that happens in the next @ns. */
	void run_for(uint64_t ns)
	{
		const uint64_t end = now_ + ns;
		run_until(end, [] { return false; });
		now_ = end;
	}

private:
	struct Event {
		uint64_t when;
		uint64_t sequence;
		Action action;
	};
	static bool later(const Event &a, const Event &b)
	{
		return std::pair(a.when, a.sequence) > std::pair(b.when, b.sequence);
	}

	std::vector<Event> heap_;
	uint64_t sequence_ = 0;
	uint64_t now_ = 0;
};

} // namespace tern::sim
