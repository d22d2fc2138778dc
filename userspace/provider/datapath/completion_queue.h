// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>
#include <span>

#include "datapath/doorbell.h"
#include "datapath/queue_table.h"
#include "datapath/record.h"
#include "spinlock.h"
#include "tern/tern_hw.h"

namespace tern::provider {

/** A completion, resolved to the work request that it ends. */
struct Completion {
	uint64_t wr_id;
	uint64_t timestamp;
	uint64_t tag; /* with TERN_CQE_TAG_MATCH, as app_ctx */
	uint32_t app_ctx;
	uint32_t qpn;
	uint32_t byte_len;
	uint32_t src_qpn; /* of datagrams, as vlan and sl */
	hw::__be32 imm;
	uint16_t vlan;  /* as in the CQE */
	uint8_t opcode; /* enum tern_hw_wqe_op or tern_hw_cqe_op */
	uint8_t status; /* enum tern_hw_cqe_status */
	uint8_t flags;  /* TERN_CQE_* */
	uint8_t sl;
};

/** The ring into which the card writes completions. All but init() under its lock. */
class CompletionQueue {
public:
	/** Where the queue is in memory. */
	struct Buffer {
		std::span<std::byte> ring; /* a power of two of CQEs */
		CqRecord record;
	};

	struct Config {
		Buffer buffer;
		DoorbellPage doorbells;
		uint32_t cqn = 0;
		const QpTable *qps = nullptr;
		const SrqTable *srqs = nullptr;
		const WqTable *wqs = nullptr;
	};

	/** Returns 0 or EINVAL. */
	int init(const Config &config);

	Spinlock &lock() { return lock_; }

	/** Takes the next completion. Those of destroyed QPs are passed over. */
	bool next(Completion &completion);

	/** Gives the CQEs that next() took back to the card. */
	void release();

	/**
	 * Goes on in another buffer, to which the card has moved all that next() did not take
	 * and the driver the index of release(). Returns 0 or EINVAL.
	 */
	int move(const Buffer &buffer);

	/** Asks for an event for the next completion; those that are there already raise none. */
	void arm(bool solicited_only);

	/**
	 * Voids the completions of QP @qpn that nobody polled, and gives the slots that they
	 * name back to @srq, which is that of the QP or null.
	 */
	void drop_qp(uint32_t qpn, SharedRecvQueue *srq);

	/** Voids the completions of SRQ @srqn, of whichever QP; one that has a CQ of its own. */
	void drop_srq(uint32_t srqn);

	/** Voids the completions of WQ @wqn. */
	void drop_wq(uint32_t wqn);

private:
	struct Tail;

	hw::tern_hw_cqe *slot(uint32_t index) const;
	bool read_tail(uint32_t index, Tail &tail) const;
	bool resolve(const hw::tern_hw_cqe &cqe, const Tail &tail, Completion &completion) const;
	bool find_tagged(const hw::tern_hw_cqe &cqe, const Tail &tail, uint64_t &wr_id) const;
	bool find_request(const hw::tern_hw_cqe &cqe, const Tail &tail, uint64_t &wr_id) const;
	SharedRecvQueue *srq_of(const hw::tern_hw_cqe &cqe, uint32_t qpn) const;
	template <class Match>
	void drop_if(Match match);

	Config config_;
	uint32_t entries_ = 0;
	uint32_t ci_ = 0;
	uint32_t released_ = 0; /* the ci that the card knows */
	uint32_t seen_ = 0; /* CQEs before this were there at the last arm(); may lie behind ci_ */
	Spinlock lock_;
};

} // namespace tern::provider
