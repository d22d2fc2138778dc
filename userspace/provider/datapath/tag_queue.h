// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include <infiniband/verbs.h>

#include "datapath/doorbell.h"
#include "datapath/owned_array.h"
#include "spinlock.h"
#include "tern/tern_hw.h"

namespace tern::provider {

/**
 * The list of tagged buffers of an SRQ, and the ring of operations that add buffers to the card's
 * list and delete them. One lock for posting and completing.
 */
class TagQueue {
public:
	struct Config {
		std::span<std::byte> ring; /* a power of two of struct tern_hw_tag_op */
		uint32_t entries = 0;      /* capacity of the list */
		uint32_t srqn = 0;
		DoorbellPage doorbells;
		const Allocator *allocator = nullptr;
	};

	/** Returns 0, EINVAL or ENOMEM. */
	int init(const Config &config);

	/** The caller holds it from the first build() of a list to its publish(). */
	Spinlock &lock() { return lock_; }

	/** Appends an operation, which gets a handle if it adds. Returns 0, EINVAL or ENOMEM. */
	int build(ibv_ops_wr &wr);

	/** Hands the operations built to the card. */
	void publish();

	/**
	 * Completes operation @index, with success if @ok, and all before it. Returns its wr_id.
	 * The caller holds the lock of the CQ, as for receive().
	 */
	uint64_t complete(uint32_t index, bool ok);

	/**
	 * Completes a message to the buffer of @entry; frees the entry with @ended. Returns the
	 * recv_wr_id of the buffer.
	 */
	uint64_t receive(uint32_t entry, bool ended);

private:
	struct Operation {
		uint64_t wr_id;
		uint32_t entry;
		uint8_t opcode; /* enum tern_hw_tag_opcode */
	};
	struct Entry {
		uint64_t wr_id;
		uint32_t next_free;
	};

	int build_add(ibv_ops_wr &wr, hw::tern_hw_tag_op &op);
	void free_entry(uint32_t entry);

	Config config_;
	uint32_t operations_count_ = 0;
	OwnedArray<Operation> operations_; /* by index in the ring */
	OwnedArray<Entry> entries_;
	uint32_t free_head_ = 0; /* the capacity: no entry is free */
	uint32_t pi_ = 0;
	uint32_t ci_ = 0;
	uint32_t published_ = 0;
	Spinlock lock_; /* protects the whole object */
};

} // namespace tern::provider
