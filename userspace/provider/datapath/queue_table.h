// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <tuple>

#include "owned.h"
#include "spinlock.h"

namespace tern::provider {

class CompletionQueue;
class RecvQueue;
class SendQueue;
class SharedRecvQueue;
class TagQueue;

/** A queue of an object and the CQ that it completes to. */
template <class Queue>
struct QueueOfCq {
	Queue *queue = nullptr;
	const CompletionQueue *cq = nullptr;
};

/**
 * From the 24-bit number of an object to its queues, in two steps.
 *
 * A poller asks under the lock of its CQ, and gets a queue only if that completes to this CQ.
 * Such a queue is entered and removed under that same lock, so it lives while the poller
 * holds it, also when the kernel has meanwhile given the number to an object with other CQs.
 */
template <class... Queues>
class QueueTable {
public:
	QueueTable() = default;
	QueueTable(const QueueTable &) = delete;
	QueueTable &operator=(const QueueTable &) = delete;
	~QueueTable()
	{
		for (const auto &leaf : root_)
			Owned<Leaf>(leaf.load(std::memory_order_relaxed));
	}

	/** Makes room for @number. False without memory. */
	bool reserve(uint32_t number)
	{
		if (entry(number))
			return true;
		Owned<Leaf> leaf = make_owned<Leaf>();
		if (!leaf)
			return false;

		const std::lock_guard guard(lock_);
		if (!entry(number))
			root_[root_index(number)].store(leaf.release(), std::memory_order_release);
		return true;
	}

	/** Enters the queues of @number, for which there is room, in the place of any before. */
	void insert(uint32_t number, QueueOfCq<Queues>... queues)
	{
		const std::lock_guard guard(lock_);
		Entry &e = *entry(number);

		(std::get<Side<Queues>>(e).set(queues), ...);
	}

	/** Removes @number if it is still that of the object with @owner; tells whether it was. */
	template <class Queue>
	bool remove(uint32_t number, const Queue *owner)
	{
		const std::lock_guard guard(lock_);
		Entry *e = entry(number);

		if (!e || std::get<Side<Queue>>(*e).queue.load(std::memory_order_relaxed) != owner)
			return false;
		(std::get<Side<Queues>>(*e).set({}), ...);
		return true;
	}

	/** The queue of that kind of @number if it completes to @cq, else null. */
	template <class Queue>
	Queue *find(uint32_t number, const CompletionQueue *cq) const
	{
		const Entry *e = entry(number);
		return e ? std::get<Side<Queue>>(*e).of(cq) : nullptr;
	}

private:
	static constexpr unsigned kLeafBits = 12;
	static constexpr uint32_t kLeafSize = 1u << kLeafBits;
	static constexpr uint32_t kRootSize = 1u << (24 - kLeafBits);

	template <class Queue>
	struct Side {
		std::atomic<const CompletionQueue *> cq;
		std::atomic<Queue *> queue;

		/*
		 * Another object may take over the entry while we read, but not without the lock
		 * of its CQ. Once its queue is seen, so is the null before it, and the second look
		 * at the CQ fails.
		 */
		Queue *of(const CompletionQueue *mine) const
		{
			if (cq.load(std::memory_order_acquire) != mine)
				return nullptr;
			Queue *q = queue.load(std::memory_order_acquire);
			return cq.load(std::memory_order_relaxed) == mine ? q : nullptr;
		}

		void set(QueueOfCq<Queue> v)
		{
			cq.store(nullptr, std::memory_order_relaxed);
			queue.store(v.queue, std::memory_order_release);
			cq.store(v.cq, std::memory_order_release);
		}
	};

	using Entry = std::tuple<Side<Queues>...>;

	struct Leaf {
		Entry entries[kLeafSize];
	};

	static uint32_t root_index(uint32_t number)
	{
		return (number >> kLeafBits) & (kRootSize - 1);
	}

	Entry *entry(uint32_t number) const
	{
		Leaf *leaf = root_[root_index(number)].load(std::memory_order_acquire);
		return leaf ? &leaf->entries[number & (kLeafSize - 1)] : nullptr;
	}

	std::atomic<Leaf *> root_[kRootSize] = {};
	Spinlock lock_; /* changes; inside the locks of CQs */
};

/** Of QPs. One with an SRQ has that in the place of a receive queue. */
using QpTable = QueueTable<SendQueue, RecvQueue, SharedRecvQueue>;

/** Of SRQs that have a CQ of their own, those of XRC and those with tags; others are found through
 * the QP. */
using SrqTable = QueueTable<SharedRecvQueue, TagQueue>;

/** Of receive WQs, which have numbers of their own. */
using WqTable = QueueTable<RecvQueue>;

} // namespace tern::provider
