// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include <infiniband/verbs.h>

#include "datapath/owned_array.h"
#include "datapath/probes.h"
#include "datapath/record.h"
#include "spinlock.h"

namespace tern::provider {

/**
 * The receive ring of a QP or a WQ. The caller holds lock() from the first build() to publish().
 */
class RecvQueue {
public:
	struct Config {
		std::span<std::byte> ring; /* entries << log_stride bytes */
		QpRecord record;
		const char *device = ""; /* name of the RDMA device, for probes */
		uint32_t qpn = 0;        /* zero: the ring of a WQ, of which no probe tells */
		uint32_t entries = 0;    /* a power of two, or zero: every post fails */
		uint8_t log_stride = 4;
		uint32_t max_sge = 0;
		const Allocator *allocator = nullptr;
	};

	/** Returns 0, EINVAL or ENOMEM. */
	int init(const Config &config);

	Spinlock &lock() { return lock_; }

	/** Appends a WQE. Returns 0, EINVAL or ENOMEM. */
	int build(uint64_t wr_id, std::span<const ibv_sge> sges);

	/** Hands the WQEs built to the card, which reads the index when a SEND arrives. */
	void publish()
	{
		config_.record.publish_rq(pi_);
		if (tern_post_recv_semaphore && config_.qpn) [[unlikely]]
			probes::post_recv(config_.device, config_.qpn, pi_);
	}

	/** Completes WQE @index and returns its wr_id. The caller holds the lock of the CQ. */
	uint64_t complete(uint32_t index)
	{
		const uint64_t wr_id = wr_ids_[index & (config_.entries - 1)];
		/* Release: build() may overwrite the entry after this store. */
		ci_.store(index + 1, std::memory_order_release);
		return wr_id;
	}

	/** These are like those of SendQueue. The state of the QP or the WQ decides. */
	bool is_open() const { return open_.load(std::memory_order_relaxed); }
	void open() { open_.store(true, std::memory_order_relaxed); }
	bool close() { return open_.exchange(false, std::memory_order_relaxed); }

	/** Empties the ring, in state RESET. The caller holds lock(). */
	void reset();

private:
	Config config_;
	uint32_t pi_ = 0;
	std::atomic<uint32_t> ci_{0};
	std::atomic<bool> open_{false}; /* set without lock_, cleared under it */
	OwnedArray<uint64_t> wr_ids_;
	Spinlock lock_; /* protects posting: pi_, ring, wr_ids_; ci_ is under the lock of the CQ */
};

} // namespace tern::provider
