/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "qemu/fabric/timing_wheel.h"
#include "qemu/rnic/environment.h"

namespace tern {

/** Runs events in simulated time, which passes only between them. Events of the same time run in
 * the order in which they were scheduled. A function that captures up to 16 plain bytes is
 * scheduled without allocation. */
class EventLoop : public Clock {
public:
	/** Two events ahead, the loop prefetches so many bytes at the first pointer that the
	 * event's function captures. One event ahead, it calls prefetch() of the function, if there
	 * is one. */
	static constexpr size_t kPrefetched = 320;

	/** How many events there may be at a time. With many, a wheel holds those that are near, as
	 * each level of a heap with thousands costs a branch that the processor cannot predict. It
	 * takes 32 KiB. */
	enum class Events { Few, Many };

	explicit EventLoop(Events events = Events::Few)
	{
		if (events == Events::Many)
			wheel_ = std::make_unique<TimingWheel>();
	}

	using Action = std::function<void()>;

	uint64_t now() override { return now_; }

	template <typename F>
	void at(uint64_t when, F action)
	{
		const uint32_t slot = take_slot();
		if constexpr (Task::fits<F>) {
			tasks_[slot].set(action);
		} else {
			others_.resize(std::max<size_t>(others_.size(), slot + 1));
			others_[slot] = std::move(action);
			tasks_[slot].set([this, slot] { std::exchange(others_[slot], nullptr)(); });
		}
		insert({std::max(when, now_), sequence_++, slot});
	}
	template <typename F>
	void after(uint64_t ns, F action)
	{
		at(now_ + ns, std::move(action));
	}

	/** Returns the time of the next event, if there is one. */
	std::optional<uint64_t> next() const
	{
		if (wheel_)
			if (const auto event = wheel_->first(now_))
				return event->when;
		return heap_.empty() ? std::nullopt : std::optional(heap_.front().when);
	}
	/** Lets the next event happen; false when there is none. */
	bool step()
	{
		const auto when = next();
		if (!when)
			return false;
		step_at(*when);
		return true;
	}

	/** Steps until @done() holds; false when time @limit comes first, or there is nothing left
	 * to happen. */
	template <typename Done>
	bool run_until(uint64_t limit, Done done)
	{
		while (!done()) {
			const auto when = next();
			if (!when || *when > limit)
				return false;
			step_at(*when);
		}
		return true;
	}
	/** Runs the events of the next @ns, and advances the time by that. */
	void run_for(uint64_t ns)
	{
		const uint64_t end = now_ + ns;
		for (auto when = next(); when && *when <= end; when = next())
			step_at(*when);
		set_now(end);
	}
	/** Runs the events before @end, and sets the time to @end, which is not in the past. */
	void run_before(uint64_t end)
	{
		for (auto when = next(); when && *when < end; when = next())
			step_at(*when);
		set_now(end);
	}
	/** Prefetches the heap and the tasks of a loop with few events. Call this shortly before
	 * the next step, if other loops have run since the last one. */
	void prefetch() const
	{
		for (size_t i = 0; i < kNearFront; i += kCacheLine) {
			__builtin_prefetch(reinterpret_cast<const char *>(heap_.data()) + i);
			__builtin_prefetch(reinterpret_cast<const char *>(tasks_.data()) + i);
		}
		__builtin_prefetch(unused_.data());
	}

private:
	/* A trivially copyable function object of up to kCaptured bytes, stored in place. */
	class Task {
		static constexpr size_t kCaptured = 16;

	public:
		template <typename F>
		static constexpr bool fits = std::is_trivially_copyable_v<F> &&
		                             sizeof(F) <= kCaptured &&
		                             alignof(F) <= alignof(void *);

		template <typename F>
		void set(const F &function)
		{
			std::memcpy(captured_, &function, sizeof(F));
			run_ = [](void *captured) { (*static_cast<F *>(captured))(); };
			if constexpr (requires { function.prefetch(); })
				prefetch_ = [](const void *captured) {
					static_cast<const F *>(captured)->prefetch();
				};
			else
				prefetch_ = nullptr;
		}
		void run() { run_(captured_); }
		void prefetch() const
		{
			if (prefetch_)
				prefetch_(captured_);
		}
		/* Assumes that a pointer is captured first. A prefetch of another value does
		 * nothing. */
		void prefetch_object() const
		{
			uintptr_t object;
			std::memcpy(&object, captured_, sizeof(object));
			for (size_t i = 0; i < kPrefetched; i += kCacheLine)
				__builtin_prefetch(reinterpret_cast<const void *>(object + i));
		}

	private:
		void (*run_)(void *captured);
		void (*prefetch_)(const void *captured);
		alignas(void *) std::byte captured_[kCaptured] = {};
	};

	/* Apart from the actions, so that the heap moves little. */
	struct Event {
		uint64_t when;
		uint64_t sequence;
		uint32_t slot;
	};
	static bool before(const Event &a, const Event &b)
	{
		return a.when != b.when ? a.when < b.when : a.sequence < b.sequence;
	}

	uint32_t take_slot()
	{
		if (unused_.empty()) {
			tasks_.emplace_back();
			return static_cast<uint32_t>(tasks_.size() - 1);
		}
		const uint32_t slot = unused_.back();
		unused_.pop_back();
		return slot;
	}

	/* Lets the next event happen, which is at @when. */
	void step_at(uint64_t when)
	{
		set_now(when);
		const uint32_t slot = take_next();
		Task task = tasks_[slot];
		unused_.push_back(slot);
		task.run();
	}
	/* Sets the time. Moves events from the heap to the wheel as soon as their time is in its
	 * span, so that events of the same time that are scheduled later run after them. @now must
	 * not be earlier than before: the wheel may have events up to its span ahead. */
	void set_now(uint64_t now)
	{
		now_ = now;
		if (!wheel_)
			return;
		while (!heap_.empty() && is_near(heap_.front().when)) {
			wheel_->push_back({heap_.front().when, heap_.front().slot});
			remove_first();
		}
	}
	bool is_near(uint64_t when) const { return when - now_ < TimingWheel::kSpan; }
	/* Removes the next event, which is due, and returns its slot. Prefetches for the two that
	 * follow: with many objects, none of them is in the cache any more when its next event
	 * comes. */
	uint32_t take_next()
	{
		if (wheel_)
			return take_from_wheel();
		const uint32_t slot = heap_.front().slot;
		remove_first();
		const size_t size = heap_.size();
		if (size)
			tasks_[heap_.front().slot].prefetch();
		if (size > 1)
			tasks_[heap_[first_of(1, std::min(1 + kWays, size))].slot]
			        .prefetch_object();
		return slot;
	}
	uint32_t take_from_wheel()
	{
		const TimingWheel::Event event = *wheel_->first(now_);
		wheel_->pop(event);
		if (const auto first = wheel_->first(now_)) {
			tasks_[first->number].prefetch();
			if (const auto second = wheel_->second(*first))
				tasks_[second->number].prefetch_object();
		}
		return event.number;
	}
	/* Returns the index of the earliest event from heap_[@begin] to heap_[@end - 1]. */
	size_t first_of(size_t begin, size_t end) const
	{
		size_t first = begin;
		for (size_t other = begin + 1; other < end; other++)
			first = before(heap_[other], heap_[first]) ? other : first;
		return first;
	}

	void insert(const Event &event)
	{
		if (wheel_ && is_near(event.when))
			return wheel_->push_back({event.when, event.slot});
		size_t at = heap_.size();
		heap_.push_back(event);
		for (; at && before(event, heap_[(at - 1) / kWays]); at = (at - 1) / kWays)
			heap_[at] = heap_[(at - 1) / kWays];
		heap_[at] = event;
	}
	/* The last event takes the first one's place, and sinks below all that come before it. */
	void remove_first()
	{
		const Event event = heap_.back();
		heap_.pop_back();
		const size_t size = heap_.size();
		size_t at = 0;
		for (size_t child; (child = kWays * at + 1) < size; at = child) {
			child = first_of(child, std::min(child + kWays, size));
			if (!before(heap_[child], event))
				break;
			heap_[at] = heap_[child];
		}
		if (size)
			heap_[at] = event;
	}

	/* How many children an event has in the heap. Four make half as many levels as two, and
	 * the children of one event share cache lines. */
	static constexpr size_t kWays = 4;
	static constexpr size_t kCacheLine = 64;

	/* The heap and the tasks of a loop with few events take up to so many bytes each. */
	static constexpr size_t kNearFront = 4 * kCacheLine;

	std::unique_ptr<TimingWheel> wheel_; /* if there may be many events */
	std::vector<Event> heap_;            /* that are not in the wheel */
	std::vector<Task> tasks_;
	std::vector<Action> others_;   /* of slots whose function is not a Task */
	std::vector<uint32_t> unused_; /* slots of tasks_ */
	uint64_t sequence_ = 0;
	uint64_t now_ = 0;
};

} // namespace tern
