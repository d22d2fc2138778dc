// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "datapath/doorbell.h"
#include "datapath/queue_table.h"
#include "datapath/record.h"
#include "spinlock.h"
#include "tern/tern_hw.h"

namespace tern::provider {

/** A CQE with the wr_id of the work request that it completes. */
struct Completion {
	uint64_t wr_id;
	uint64_t timestamp;
	uint64_t tag; /* tag and app_ctx: valid with TERN_CQE_TAG_MATCH */
	uint32_t app_ctx;
	uint32_t qpn;
	uint32_t byte_len;
	uint32_t src_qpn; /* src_qpn, vlan and sl: of datagrams only */
	hw::__be32 imm;
	uint16_t vlan;  /* 0xffff: no tag */
	uint8_t opcode; /* enum tern_hw_wqe_op or tern_hw_cqe_op */
	uint8_t status; /* enum tern_hw_cqe_status */
	uint8_t flags;  /* TERN_CQE_* */
	uint8_t sl;
};

/**
 * The ring into which the card writes CQEs, and the lookup of the requests that they complete. The
 * caller of each method but init() holds lock().
 */
class CompletionQueue {
public:
	/** The memory of the queue, which the driver allocates. */
	struct Buffer {
		std::span<std::byte> ring; /* a power of two of CQEs */
		CqRecord record;
	};

	struct Config {
		Buffer buffer;
		DoorbellPage doorbells;
		uint32_t cqn = 0;
		const char *device = ""; /* name of the RDMA device, for probes */
		const QpTable *qps = nullptr;
		const SrqTable *srqs = nullptr;
		const PlainSrqTable *plain_srqs = nullptr;
		const WqTable *wqs = nullptr;
	};

	/** Returns 0 or EINVAL. */
	int init(const Config &config);

	/** Held from the start of a poll to its end by an extended CQ. */
	HeldSpinlock &lock() { return lock_; }

	/** Takes the next completion; skips CQEs of destroyed queues. False if there is none. */
	bool next(Completion &completion);

	/** Ends a poll: lets the card reuse the CQEs that next() took. */
	void release();

	/**
	 * Switches to @buffer. The card has copied there each CQE that next() has not taken, and
	 * the driver the consumer index of the last release(). Returns 0 or EINVAL.
	 */
	int move(const Buffer &buffer);

	/** The card writes to a ring that this process cannot map: next() finds what is in the old
	 * one, then nothing more. */
	void close() { closed_ = true; }
	bool closed() const { return closed_; }

	/**
	 * Requests an event for the first CQE that is not polled and for which no event was
	 * requested before, be it there or to come.
	 */
	void arm(bool solicited_only);
	/**
	 * Says whether the card may raise the event of a CQE later (ibv_modify_cq()). Returns what
	 * it was before.
	 */
	bool set_moderated(bool moderated) { return std::exchange(moderated_, moderated); }

	/**
	 * Removes the unpolled CQEs of QP @qpn, and frees the slots of SRQs that they name. The
	 * table still has the QP, which tells which SRQs these are.
	 */
	void drop_qp(uint32_t qpn);

	/**
	 * Removes the unpolled CQEs of SRQ @srqn, which has a CQ of its own, for any QP. Those of a
	 * newer SRQ of this number, which has no CQ of its own, stay.
	 */
	void drop_srq(uint32_t srqn);

	/** Removes the unpolled CQEs of WQ @wqn. */
	void drop_wq(uint32_t wqn);

private:
	struct Tail;

	hw::tern_hw_cqe *slot(uint32_t index) const;
	bool read_tail(uint32_t index, Tail &tail) const;
	/* Whether @index, of a CQE that exists or is the next, is not behind ci_. */
	bool is_ahead(uint32_t index) const { return index - ci_ <= entries_; }
	bool resolve(const hw::tern_hw_cqe &cqe, const Tail &tail, Completion &completion) const;
	bool find_tagged(const hw::tern_hw_cqe &cqe, const Tail &tail, uint64_t &wr_id) const;
	bool find_request(const hw::tern_hw_cqe &cqe, const Tail &tail, uint64_t &wr_id) const;
	SharedRecvQueue *plain_srq_of(const hw::tern_hw_cqe &cqe, uint32_t qpn) const;
	SharedRecvQueue *srq_of(const hw::tern_hw_cqe &cqe, uint32_t qpn) const;
	void free_slot(const hw::tern_hw_cqe &cqe) const;
	template <class Match>
	void drop_if(Match match);

	Config config_;
	uint32_t entries_ = 0;
	uint32_t ci_ = 0;
	uint32_t released_ = 0;   /* the ci last published to the card */
	uint32_t armed_from_ = 0; /* the index of the last arm(), if armed_ */
	uint32_t moved_last_ = 0; /* the last CQE when drop_if() moved some, if moved_ */
	bool closed_ = false;
	bool armed_ = false; /* for any CQE, and that at armed_from_ is not polled */
	bool moved_ = false;
	bool moderated_ = false;
	/* protects this object, and the table entries and ci_ of the queues that complete to it */
	HeldSpinlock lock_;
};

} // namespace tern::provider
