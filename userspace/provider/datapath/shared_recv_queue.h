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
 * An SRQ: slots with receive WQEs, and the ring that tells the card in which order to take
 * them. QPs of different CQs give slots back, so unlike the other queues it has one lock for
 * posting and completing; inside the locks of CQs.
 */
class SharedRecvQueue {
public:
	/** Where the queue is in memory. */
	struct Buffer {
		std::span<std::byte> slots; /* entries << log_stride bytes */
		std::span<std::byte> ring;  /* as many __le32 */
		SrqRecord record;
		uint32_t entries = 0; /* a power of two */
		uint8_t log_stride = 4;
	};

	/** Returns 0, EINVAL or ENOMEM. */
	int init(const Buffer &buffer, uint32_t max_sge, const Allocator *allocator = nullptr);

	/** To be held from the first build() to the publish() that ends the list. */
	Spinlock &lock() { return lock_; }

	/** Appends a WQE. Returns 0, EINVAL or ENOMEM. */
	int build(uint64_t wr_id, std::span<const ibv_sge> sges);

	/** Hands what was built to the card. */
	void publish() { buffer_.record.publish(pi_); }

	/** The WQE in @slot has completed. Returns its wr_id. Called under the lock of a CQ. */
	uint64_t complete(uint32_t slot)
	{
		const std::lock_guard guard(lock_);
		return give_back(slot);
	}

	/**
	 * Goes on in a larger @buffer, into which the driver has copied all. Returns 0, EINVAL or
	 * ENOMEM. Called under the lock.
	 */
	int move(const Buffer &buffer);

	/** Takes no more requests: where the card takes them from is not known to us. */
	void close() { closed_ = true; }

private:
	/* Slots that are free are a list, first in, first out. */
	struct Slot {
		uint64_t wr_id;
		uint32_t next_free;
	};

	bool fits(const Buffer &buffer) const;
	OwnedArray<Slot> make_slots(uint32_t n) const;
	uint64_t give_back(uint32_t slot);
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
	Spinlock lock_;
};

} // namespace tern::provider
