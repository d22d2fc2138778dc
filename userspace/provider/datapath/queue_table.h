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

/** A queue and the CQ that it completes to. */
template <class Queue>
struct QueueOfCq {
	Queue *queue = nullptr;
	const CompletionQueue *cq = nullptr;
};

/**
 * A two-level table from the 24-bit number of an object to its queues.
 *
 * A poller looks up queues under the lock of its CQ, and finds only those that complete to this
 * CQ. Queues are inserted and removed under the same lock, so what it finds stays valid until
 * it unlocks, even if the kernel has reused the number for an object with other CQs.
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

	/** Allocates the leaf of @number. False when memory is short. */
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

	/** Sets the queues of @number, after reserve(); replaces those of an earlier object. */
	void insert(uint32_t number, QueueOfCq<Queues>... queues)
	{
		const std::lock_guard guard(lock_);
		Entry &e = *entry(number);

		(std::get<Cell<Queues>>(e).set(queues), ...);
	}

	/** Clears @number if its queue is still @owner. Returns whether it was. */
	template <class Queue>
	bool remove(uint32_t number, const Queue *owner)
	{
		const std::lock_guard guard(lock_);
		Entry *e = entry(number);

		if (!e || std::get<Cell<Queue>>(*e).queue.load(std::memory_order_relaxed) != owner)
			return false;
		(std::get<Cell<Queues>>(*e).set({}), ...);
		return true;
	}

	/** The queue of @number with this type if it completes to @cq, else null. */
	template <class Queue>
	Queue *find(uint32_t number, const CompletionQueue *cq) const
	{
		const Entry *e = entry(number);
		return e ? std::get<Cell<Queue>>(*e).of(cq) : nullptr;
	}

	/** Whether an object of @number completes to @cq, whose lock the caller holds. */
	bool completes_to(uint32_t number, const CompletionQueue *cq) const
	{
		const Entry *e = entry(number);
		const auto is = [cq](const auto &cell) {
			return cell.cq.load(std::memory_order_relaxed) == cq;
		};
		return e && (is(std::get<Cell<Queues>>(*e)) || ...);
	}

private:
	static constexpr unsigned kLeafBits = 12;
	static constexpr uint32_t kLeafSize = 1u << kLeafBits;
	static constexpr uint32_t kRootSize = 1u << (24 - kLeafBits);

	template <class Queue>
	struct Cell {
		std::atomic<const CompletionQueue *> cq;
		std::atomic<Queue *> queue;

		/*
		 * Another object can replace this one during the lookup, if it has another CQ.
		 * set() stores a null CQ before the queue, so a lookup that loads the new queue
		 * also loads the null, or a later value, in its second check of the CQ.
		 */
		Queue *of(const CompletionQueue *expected) const
		{
			if (cq.load(std::memory_order_acquire) != expected)
				return nullptr;
			Queue *q = queue.load(std::memory_order_acquire);
			return cq.load(std::memory_order_relaxed) == expected ? q : nullptr;
		}

		void set(QueueOfCq<Queue> v)
		{
			cq.store(nullptr, std::memory_order_relaxed);
			queue.store(v.queue, std::memory_order_release);
			cq.store(v.cq, std::memory_order_release);
		}
	};

	using Entry = std::tuple<Cell<Queues>...>;

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
	Spinlock lock_; /* protects changes of the table; lookups are lock-free */
};

/** QPs by number. A QP has either a receive queue or an SRQ. */
using QpTable = QueueTable<SendQueue, RecvQueue, SharedRecvQueue>;

/** SRQs with a CQ of their own (types XRC and TM) by number; others are found through the QP. */
using SrqTable = QueueTable<SharedRecvQueue, TagQueue>;

/**
 * SRQs without a CQ of their own, by number; the CQ of an entry is null. This table finds the SRQ
 * that the CQE of a destroyed QP names. An SRQ outlives its QPs and their CQEs, so whoever holds
 * the lock of the CQ may use the SRQ that a CQE names.
 */
using PlainSrqTable = QueueTable<SharedRecvQueue>;

/** Receive WQs by number, which is not a QP number. */
using WqTable = QueueTable<RecvQueue>;

} // namespace tern::provider
