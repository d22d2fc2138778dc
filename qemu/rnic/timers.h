/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tern {

/** The object a deadline belongs to. */
struct TimerOwner {
	enum class Kind : uint8_t { Qp, Cq, Wq, Pause };

	Kind kind;
	uint32_t number;

	auto operator<=>(const TimerOwner &) const = default;
};

/** An owner's entry in the queue; must not move while it has a deadline. */
struct Timer {
	static constexpr uint64_t kNone = UINT64_MAX;

	uint64_t deadline = kNone; /* ns, by the clock port */
	uint32_t place = 0;        /* index in the heap, valid with a deadline */
};

/**
 * A queue of deadlines, at most one for each owner. An owner with several keeps only the first one
 * here, and sets the next when it expires. So the guest cannot make the queue grow, and an owner
 * that postpones a deadline need not change the queue. The queue is a binary heap, which allocates
 * only when it exceeds its largest size so far. Equal deadlines expire in the order of the owners.
 */
class TimerQueue {
public:
	/** @deadline: kNone removes the timer. */
	void move(TimerOwner owner, Timer &timer, uint64_t deadline)
	{
		if (timer.deadline != Timer::kNone)
			take_out(timer.place);
		timer.deadline = deadline;
		if (deadline == Timer::kNone)
			return;
		heap_.push_back({deadline, owner, &timer});
		rise(heap_.size() - 1);
	}

	void drop(TimerOwner owner, Timer &timer) { move(owner, timer, Timer::kNone); }
	std::optional<uint64_t> next() const
	{
		if (heap_.empty())
			return std::nullopt;
		return heap_.front().deadline;
	}

	/** Removes and returns the owner of a deadline that is due at @now. */
	std::optional<TimerOwner> pop_due(uint64_t now)
	{
		if (heap_.empty() || heap_.front().deadline > now)
			return std::nullopt;
		const Entry due = heap_.front();
		take_out(0);
		due.timer->deadline = Timer::kNone;
		return due.owner;
	}

private:
	struct Entry {
		uint64_t deadline;
		TimerOwner owner;
		Timer *timer;

		bool before(const Entry &other) const
		{
			return std::pair(deadline, owner) < std::pair(other.deadline, other.owner);
		}
	};

	void put(size_t place, const Entry &entry)
	{
		heap_[place] = entry;
		entry.timer->place = static_cast<uint32_t>(place);
	}

	void rise(size_t place)
	{
		const Entry entry = heap_[place];
		for (; place && entry.before(heap_[(place - 1) / 2]); place = (place - 1) / 2)
			put(place, heap_[(place - 1) / 2]);
		put(place, entry);
	}

	void sink(size_t place)
	{
		const Entry entry = heap_[place];
		for (size_t child; (child = 2 * place + 1) < heap_.size(); place = child) {
			if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child]))
				child++;
			if (!heap_[child].before(entry))
				break;
			put(place, heap_[child]);
		}
		put(place, entry);
	}

	void take_out(size_t place)
	{
		const Entry last = heap_.back();
		heap_.pop_back();
		if (place == heap_.size())
			return;
		put(place, last);
		rise(place);
		sink(last.timer->place);
	}

	std::vector<Entry> heap_;
};

} // namespace tern
