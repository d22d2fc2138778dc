// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <atomic>
#include <cstdint>

#include "spinlock.h"

namespace tern::provider {

class CompletionQueue;
class RecvQueue;
class SendQueue;

/** A queue of a QP and the CQ that it completes to. */
template <class Queue>
struct QueueOfCq {
	Queue *queue = nullptr;
	const CompletionQueue *cq = nullptr;
};

/**
 * From a 24-bit QP number to its queues, in two steps.
 *
 * A poller asks under the lock of its CQ, and gets a queue only if that completes to this CQ.
 * Such a queue is entered and removed under that same lock, so it lives while the poller
 * holds it, also when the kernel has meanwhile given the number to a QP with other CQs.
 */
class QpTable {
public:
	QpTable() = default;
	QpTable(const QpTable &) = delete;
	QpTable &operator=(const QpTable &) = delete;
	~QpTable();

	/** Makes room for @qpn. False without memory. */
	bool reserve(uint32_t qpn);

	/** Enters the queues of @qpn, for which there is room, in the place of any before. */
	void insert(uint32_t qpn, QueueOfCq<SendQueue> send, QueueOfCq<RecvQueue> recv);

	/** Removes @qpn if it is still the number of @sq, and tells whether it was. */
	bool remove(uint32_t qpn, const SendQueue *sq);

	/** The send queue of @qpn if it completes to @cq, else null. */
	SendQueue *send_queue(uint32_t qpn, const CompletionQueue *cq) const
	{
		const Entry *entry = find(qpn);
		return entry ? entry->send.of(cq) : nullptr;
	}

	/** The receive queue of @qpn if it completes to @cq, else null. */
	RecvQueue *recv_queue(uint32_t qpn, const CompletionQueue *cq) const
	{
		const Entry *entry = find(qpn);
		return entry ? entry->recv.of(cq) : nullptr;
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
		 * Another QP may take over the entry while we read, but not without the lock of
		 * its CQ. Once its queue is seen, so is the null before it, and the second look at
		 * the CQ fails.
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

	struct Entry {
		Side<SendQueue> send;
		Side<RecvQueue> recv;
	};

	struct Leaf {
		Entry entries[kLeafSize];
	};

	std::atomic<Leaf *> &leaf_of(uint32_t qpn)
	{
		return root_[(qpn >> kLeafBits) & (kRootSize - 1)];
	}

	const Entry *find(uint32_t qpn) const
	{
		const Leaf *leaf =
		        const_cast<QpTable *>(this)->leaf_of(qpn).load(std::memory_order_acquire);
		return leaf ? &leaf->entries[qpn & (kLeafSize - 1)] : nullptr;
	}

	Entry *writable(uint32_t qpn) { return const_cast<Entry *>(find(qpn)); }

	std::atomic<Leaf *> root_[kRootSize] = {};
	Spinlock lock_; /* changes; inside the locks of CQs */
};

} // namespace tern::provider
