/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "qemu/rnic/ports.h"

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
		return heap_.empty() ? std::nullopt : std::optional(heap_.front().when);
	}
	/** Lets the next event happen; false when there is none. */
	bool step()
	{
		if (heap_.empty())
			return false;
		const Event event = heap_.front();
		remove_first();
		Task task = tasks_[event.slot];
		unused_.push_back(event.slot);
		look_ahead();
		now_ = event.when;
		task.run();
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

	/* Prefetches for the next two events. With many objects, none of them is in the cache
	 * any more when its next event comes. */
	void look_ahead() const
	{
		const size_t size = heap_.size();
		if (size)
			tasks_[heap_.front().slot].prefetch();
		if (size > 1)
			tasks_[heap_[first_of(1, std::min(1 + kWays, size))].slot]
			        .prefetch_object();
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

	std::vector<Event> heap_;
	std::vector<Task> tasks_;
	std::vector<Action> others_;   /* of slots whose function is not a Task */
	std::vector<uint32_t> unused_; /* slots of tasks_ */
	uint64_t sequence_ = 0;
	uint64_t now_ = 0;
};

} // namespace tern
