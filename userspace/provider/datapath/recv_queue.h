// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include <infiniband/verbs.h>

#include "datapath/owned_array.h"
#include "datapath/record.h"
#include "spinlock.h"

namespace tern::provider {

/** The receive ring of a QP; locked by its user like a SendQueue. */
class RecvQueue {
public:
	struct Config {
		std::span<std::byte> ring; /* entries << log_stride bytes */
		QpRecord record;
		uint32_t entries = 0; /* a power of two, or zero: nothing can be posted */
		uint8_t log_stride = 4;
		uint32_t max_sge = 0;
		const Allocator *allocator = nullptr;
	};

	/** Returns 0, EINVAL or ENOMEM. */
	int init(const Config &config);

	Spinlock &lock() { return lock_; }

	/** Appends a WQE. Returns 0, EINVAL or ENOMEM. */
	int build(uint64_t wr_id, std::span<const ibv_sge> sges);

	/** Hands what was built to the card. No doorbell: it looks when a SEND comes. */
	void publish() { config_.record.publish_rq(pi_); }

	/** WQE @index has completed. Returns its wr_id. Called under the lock of the CQ. */
	uint64_t complete(uint32_t index)
	{
		const uint64_t wr_id = wr_ids_[index & (config_.entries - 1)];
		/* Release: the entry may be reused from here on. */
		ci_.store(index + 1, std::memory_order_release);
		return wr_id;
	}

	/** Empties the ring of a QP that went to RESET. */
	void reset();

private:
	Config config_;
	uint32_t pi_ = 0;
	std::atomic<uint32_t> ci_{0};
	OwnedArray<uint64_t> wr_ids_;
	Spinlock lock_;
};

} // namespace tern::provider
