// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <span>

#include <infiniband/verbs.h>

#include "datapath/doorbell.h"
#include "datapath/owned_array.h"
#include "datapath/record.h"
#include "datapath/service.h"
#include "spinlock.h"
#include "tern/tern_hw.h"

namespace tern::provider {

/** A send work request without its local data. */
struct SendRequest {
	uint64_t wr_id = 0;
	hw::tern_hw_wqe_op op = hw::TERN_OP_SEND;
	uint8_t flags = 0;        /* TERN_WQE_SIGNALED, _SOLICITED, _FENCE */
	hw::__be32 imm{};         /* SEND_INV, LOCAL_INV: the key to invalidate */
	uint32_t rkey = 0;        /* BIND_MW: the window's new rkey */
	uint64_t remote_addr = 0; /* BIND_MW: start of the window */
	uint64_t swap_add = 0;
	uint64_t compare = 0;

	/* FLUSH */
	uint32_t flush_length = 0;
	uint8_t flush_type = 0;  /* TERN_FLUSH_* */
	uint8_t flush_level = 0; /* enum tern_hw_flush_level */

	/* BIND_MW */
	uint64_t bind_length = 0;
	uint32_t bind_lkey = 0;
	uint8_t bind_access = 0; /* TERN_ACCESS_* */

	/* destination */
	uint32_t srqn = 0;     /* XRC */
	uint32_t dest_qpn = 0; /* dest_qpn, qkey and address: UD */
	uint32_t qkey = 0;
	const hw::tern_hw_ud_seg *address = nullptr; /* without dest_qpn and qkey */
};

/** Whether a request of @op sends packets to the peer. */
constexpr bool is_sent(hw::tern_hw_wqe_op op)
{
	return op != hw::TERN_OP_LOCAL_INV && op != hw::TERN_OP_BIND_MW;
}

/** Whether a request of @op transfers local data. */
constexpr bool is_transfer(hw::tern_hw_wqe_op op)
{
	return is_sent(op) && op != hw::TERN_OP_FLUSH;
}

/** A buffer to copy into the WQE. */
struct InlinePiece {
	const void *addr;
	size_t length;
};

/**
 * The send ring of a QP. The caller holds lock() from the first build() of a list to its publish()
 * or discard(), and the lock of the CQ for complete().
 */
class SendQueue {
public:
	struct Config {
		std::span<std::byte> ring; /* a power of two of blocks */
		QpRecord record;
		DoorbellPage doorbells;
		uint32_t qpn = 0;
		const char *device = ""; /* name of the RDMA device, for probes */
		uint32_t max_wr = 0;     /* outstanding requests, no more than blocks */
		uint32_t max_sge = 0;
		uint32_t max_inline = 0;
		Service service = Service::kRc;
		OpSet ops; /* operations that can be posted */
		bool shadow_doorbell = false;
		bool signal_all = false;
		const Allocator *allocator = nullptr;
	};

	/** Returns 0, EINVAL or ENOMEM. */
	int init(const Config &config);

	Spinlock &lock() { return lock_; }
	Service service() const { return config_.service; }

	/** Appends a WQE with data segments for @sges. Returns 0, EINVAL or ENOMEM. */
	int build(const SendRequest &request, std::span<const ibv_sge> sges);

	/** Appends a WQE with inline data. Returns 0, EINVAL or ENOMEM. */
	int build_inline(const SendRequest &request, std::span<const ibv_sge> pieces);
	int build_inline(const SendRequest &request, std::span<const ibv_data_buf> pieces);

	/** Writes the destination of @request into the WQE that was built last. */
	void set_destination(const SendRequest &request);

	/** Hands the WQEs built to the card, with at most one doorbell. */
	void publish();

	/** Drops the WQEs built since the last publish(). */
	void discard() { next_ = published_; }

	/**
	 * Completes the WQE that begins at block @index, and all before it. Returns its wr_id. The
	 * caller holds the lock of the CQ.
	 */
	uint64_t complete(uint32_t index)
	{
		const Slot &slot = slots_[index & (blocks_ - 1)];
		const uint64_t wr_id = slot.wr_id;
		/* Release: build() may overwrite the slot after this store. */
		completed_.store(slot.end, std::memory_order_release);
		return wr_id;
	}

	/**
	 * Whether requests can be posted, which the state of the QP decides. The caller holds
	 * lock(), so that the queue stays open until it unlocks.
	 */
	bool is_open() const { return open_.load(std::memory_order_relaxed); }
	void open() { open_.store(true, std::memory_order_relaxed); }

	/** Returns whether the queue was open. The caller holds lock(). */
	bool close() { return open_.exchange(false, std::memory_order_relaxed); }

	/** Empties the ring, in state RESET. The caller holds lock(). */
	void reset();

private:
	/*
	 * A place in the queue: the sum of kRequest and the number of blocks of each WQE up to it.
	 * In one word, so that a poller publishes both with one store. The low half is the index
	 * of a block; blocks carry into the high half, but not in the difference of two positions.
	 */
	using Position = uint64_t;
	static constexpr Position kRequest = Position{1} << 32;
	static constexpr uint32_t block_of(Position p) { return static_cast<uint32_t>(p); }

	/* State of a WQE, stored at the index of its first block. */
	struct Slot {
		uint64_t wr_id;
		Position end; /* after the WQE */
	};

	template <class Piece>
	int build_inline_from(const SendRequest &request, std::span<const Piece> pieces);
	int reserve(uint32_t segs) const;
	uint32_t header_segs(hw::tern_hw_wqe_op op) const;
	uint32_t put_headers(const SendRequest &request, uint8_t flags, uint32_t segs,
	                     uint32_t inline_len);
	template <class Segment>
	uint32_t put(uint32_t seg, const Segment &segment);
	void put_bytes(uint32_t offset, const void *data, size_t length);
	void commit(const SendRequest &request, uint32_t segs);
	void report_posts() const;
	uint64_t data_bytes(uint32_t block, const hw::tern_hw_ctrl_seg &ctrl) const;

	Config config_;
	uint32_t blocks_ = 0;
	uint32_t last_ = 0;      /* first block of the last WQE built */
	Position next_ = 0;      /* after it */
	Position published_ = 0; /* after the last WQE published */
	std::atomic<Position> completed_{0};
	std::atomic<bool> open_{false}; /* set without lock_, cleared under it */
	OwnedArray<Slot> slots_;
	Spinlock lock_; /* protects posting: all but completed_, which is under that of the CQ */
};

} // namespace tern::provider
