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
 * The list of tagged buffers of an SRQ, and the ring of operations by which the card's list is
 * made the same. One lock for posting and completing, inside those of CQs.
 */
class TagQueue {
public:
	struct Config {
		std::span<std::byte> ring; /* a power of two of struct tern_hw_tag_op */
		uint32_t entries = 0;      /* of the list */
		uint32_t srqn = 0;
		DoorbellPage doorbells;
		const Allocator *allocator = nullptr;
	};

	/** Returns 0, EINVAL or ENOMEM. */
	int init(const Config &config);

	/** To be held from the first build() to the publish() that ends the list. */
	Spinlock &lock() { return lock_; }

	/** Appends an operation, and tells the handle of an added buffer. Returns 0, EINVAL or
	 * ENOMEM. */
	int build(ibv_ops_wr &wr);

	/** Hands what was built to the card. */
	void publish();

	/** Operation @index has completed, with all before it; @ok tells how. Returns its wr_id.
	 * Called under the lock of a CQ, as the next. */
	uint64_t complete(uint32_t index, bool ok);

	/** The buffer of @entry was matched. With @ended it is no longer the card's. Returns its
	 * recv_wr_id. */
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
	void give_back(uint32_t entry);

	Config config_;
	uint32_t operations_count_ = 0;
	OwnedArray<Operation> operations_; /* by place in the ring */
	OwnedArray<Entry> entries_;
	uint32_t free_head_ = 0; /* entries_.size(): none */
	uint32_t pi_ = 0;
	uint32_t ci_ = 0;
	uint32_t published_ = 0;
	Spinlock lock_;
};

} // namespace tern::provider
