/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "qemu/rnic/ports.h"

namespace tern {

/** Runs events in simulated time, which passes only between them. Events of the same time run in
 * the order in which they were scheduled. A function that captures up to 16 plain bytes is
 * scheduled without allocation. */
class EventLoop : public Clock {
public:
	using Action = std::function<void()>;

	uint64_t now() override { return now_; }

	void at(uint64_t when, Action action)
	{
		uint32_t slot;
		if (unused_.empty()) {
			slot = static_cast<uint32_t>(actions_.size());
			actions_.push_back(std::move(action));
		} else {
			slot = unused_.back();
			unused_.pop_back();
			actions_[slot] = std::move(action);
		}
		heap_.push_back({std::max(when, now_), sequence_++, slot});
		std::push_heap(heap_.begin(), heap_.end(), later);
	}
	void after(uint64_t ns, Action action) { at(now_ + ns, std::move(action)); }

	/** Returns the time of the next event, if there is one. */
	std::optional<uint64_t> next() const
	{
		return heap_.empty() ? std::nullopt : std::optional(heap_.front().when);
	}
	/** Lets the next event happen; false when there is none. */
	bool step()
	{
		if (heap_.empty())
			return false;
		std::pop_heap(heap_.begin(), heap_.end(), later);
		const Event event = heap_.back();
		heap_.pop_back();
		const Action action = std::exchange(actions_[event.slot], nullptr);
		unused_.push_back(event.slot);
		now_ = event.when;
		action();
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
		run_before(end + 1);
		now_ = end;
	}
	/** All that happens before @end, which is now then. */
	void run_before(uint64_t end)
	{
		while (!heap_.empty() && heap_.front().when < end)
			step();
		now_ = end;
	}

private:
	/* Apart from the actions, so that the heap moves little. */
	struct Event {
		uint64_t when;
		uint64_t sequence;
		uint32_t slot;
	};
	static bool later(const Event &a, const Event &b)
	{
		return std::pair(a.when, a.sequence) > std::pair(b.when, b.sequence);
	}

	std::vector<Event> heap_;
	std::vector<Action> actions_;
	std::vector<uint32_t> unused_; /* slots of actions_ */
	uint64_t sequence_ = 0;
	uint64_t now_ = 0;
};

} // namespace tern
