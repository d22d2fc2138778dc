// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

#include <infiniband/verbs.h>

#include "datapath/owned_array.h"
#include "datapath/record.h"
#include "spinlock.h"

namespace tern::provider {

/**
 * The queue of an SRQ: slots with receive WQEs, and a ring of slot numbers in the order of posting.
 * QPs of several CQs complete to it, so unlike other queues it has one lock for posting and
 * completing.
 */
class SharedRecvQueue {
public:
	/** The memory of the queue, which the driver allocates. */
	struct Buffer {
		std::span<std::byte> slots; /* entries << log_stride bytes */
		std::span<std::byte> ring;  /* as many __le32 */
		SrqRecord record;
		uint32_t entries = 0; /* a power of two */
		uint8_t log_stride = 4;
	};

	/** The state of a slot. Free slots form a FIFO list. */
	struct Slot {
		uint64_t wr_id;
		uint32_t next_free;
	};

	/** Returns 0, EINVAL or ENOMEM. */
	int init(const Buffer &buffer, uint32_t max_sge, const Allocator *allocator = nullptr);

	/** The caller holds it from the first build() of a list to its publish(). */
	Spinlock &lock() { return lock_; }

	/** The number of slots. The caller holds lock(). */
	uint32_t entries() const { return buffer_.entries; }

	/** Appends a WQE. Returns 0, EINVAL or ENOMEM. */
	int build(uint64_t wr_id, std::span<const ibv_sge> sges);

	/** Hands the WQEs built to the card. */
	void publish() { buffer_.record.publish(pi_); }

	/** Completes the WQE in @slot and returns its wr_id. The caller holds the lock of a CQ. */
	uint64_t complete(uint32_t slot)
	{
		const std::lock_guard guard(lock_);
		return free_slot(slot);
	}

	/**
	 * Allocates what a move() to @entries slots needs; null when memory is short. The caller
	 * does not hold lock(), because the application's allocator may post to this SRQ.
	 */
	OwnedArray<Slot> make_slots(uint32_t entries) const;

	/**
	 * Switches to the larger @buffer, into which the driver has copied slots and ring, and
	 * exchanges @slots, which make_slots(buffer.entries) has made, for the old ones. Returns 0
	 * or EINVAL. The caller holds lock(), and frees @slots without it.
	 */
	int move(const Buffer &buffer, OwnedArray<Slot> &slots);

	/** Makes further posts fail: the card reads from a buffer that this process cannot map. */
	void close() { closed_ = true; }

private:
	bool fits(const Buffer &buffer) const;
	uint64_t free_slot(uint32_t slot);
	void append_free(uint32_t slot);

	Buffer buffer_;
	uint32_t max_sge_ = 0;
	const Allocator *allocator_ = nullptr;
	uint32_t pi_ = 0;
	uint32_t free_head_ = 0;
	uint32_t free_tail_ = 0;
	uint32_t free_count_ = 0;
	bool closed_ = false;
	OwnedArray<Slot> slots_;
	Spinlock lock_; /* protects the whole object */
};

} // namespace tern::provider
