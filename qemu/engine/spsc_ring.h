/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace tern {

/**
 * A bounded single-producer, single-consumer queue without a lock. Entries are filled and read in
 * place: reserve(), fill, commit(); front(), use, pop().
 */
template <typename T, size_t kCapacity>
class SpscRing {
	static_assert((kCapacity & (kCapacity - 1)) == 0);

public:
	/* producer */
	T *reserve()
	{
		const size_t tail = tail_.load(std::memory_order_relaxed);
		if (tail - head_.load(std::memory_order_acquire) == kCapacity)
			return nullptr;
		return &slots_[tail & (kCapacity - 1)];
	}
	void commit()
	{
		tail_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
	}

	/* consumer */
	T *front()
	{
		const size_t head = head_.load(std::memory_order_relaxed);
		if (head == tail_.load(std::memory_order_acquire))
			return nullptr;
		return &slots_[head & (kCapacity - 1)];
	}
	void pop()
	{
		head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
	}

	/* both sides; the other may change the result at once */
	bool empty() const { return size() == 0; }
	bool full() const { return size() == kCapacity; }
	bool half_empty() const { return size() <= kCapacity / 2; }

private:
	size_t size() const
	{
		/* Read head first: a head read after the tail could be past it. */
		const size_t head = head_.load(std::memory_order_acquire);
		return tail_.load(std::memory_order_acquire) - head;
	}

	/* Not value-initialised, so that pages of unused slots are never touched. */
	std::unique_ptr<T[]> slots_{new T[kCapacity]};
	alignas(64) std::atomic<size_t> head_{0};
	alignas(64) std::atomic<size_t> tail_{0};
};

} // namespace tern
