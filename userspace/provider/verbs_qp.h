// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "datapath/recv_queue.h"
#include "datapath/send_queue.h"
#include "mapping.h"
#include "private_abi.h"
#include "verbs_pd.h"
#include "verbs_srq.h"

namespace tern::provider {

/** The enum ibv_rx_hash_fields that the card supports. */
constexpr uint32_t kHashFields = TERN_HASH_SRC_IPV4 | TERN_HASH_DST_IPV4 | TERN_HASH_SRC_IPV6 |
                                 TERN_HASH_DST_IPV6 | TERN_HASH_SRC_PORT_TCP |
                                 TERN_HASH_DST_PORT_TCP | TERN_HASH_SRC_PORT_UDP |
                                 TERN_HASH_DST_PORT_UDP;

/** The request that an ibv_wr_* call began. Its setters may follow in any order. */
struct PendingRequest {
	SendRequest request;
	bool active = false;
	bool built = false;           /* its data is set and the WQE written */
	bool has_destination = false; /* set, or not needed */
	int error = 0;                /* the first error of this list */
};

/** A QP: the object of libibverbs, and its queues. */
struct Qp {
	private_abi::VerbsQp verbs;
	Service service = Service::kRc;
	DomainUse domain;
	Mapping mapping; /* SQ, RQ and record; empty for QPs without queues */
	QpRecord record;
	SendQueue sq;
	RecvQueue rq;
	bool has_rq = false;
	bool flushes = false;   /* created with TERNDV_QP_EX_WITH_FLUSH */
	PendingRequest pending; /* protected by the lock of the SQ */
	/* protects the numbers of transitions to RESET; the queues are closed under it, too */
	Spinlock resets_lock;
	uint32_t resets_begun = 0;
	uint32_t resets_ended = 0;

	SharedRecvQueue *srq() const
	{
		return verbs.qp.srq ? &Srq::of(verbs.qp.srq)->queue : nullptr;
	}

	static Qp *of(ibv_qp *qp) { return reinterpret_cast<Qp *>(qp); }
	static Qp *of(ibv_qp_ex *qp) { return reinterpret_cast<Qp *>(qp); }
};

static_assert(offsetof(private_abi::VerbsQp, qp) == 0 &&
              offsetof(private_abi::VerbsQp, qp_ex) == 0);

/**
 * Sets the ibv_wr_* calls of @qp that @wanted names (enum ibv_qp_create_send_ops_flags). Returns 0,
 * or EOPNOTSUPP if @ops lacks one.
 */
int set_send_ops(Qp &qp, uint64_t wanted, OpSet ops);

} // namespace tern::provider
