// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "abi34.h"
#include "datapath/recv_queue.h"
#include "datapath/send_queue.h"
#include "mapping.h"
#include "verbs_pd.h"
#include "verbs_srq.h"

namespace tern::provider {

/** The request that an ibv_wr_* call began. Its setters come in any order. */
struct PendingRequest {
	SendRequest request;
	bool active = false;
	bool built = false;           /* its data is set, so the WQE is there */
	bool has_destination = false; /* or needs none */
	int error = 0;                /* the first of this list */
};

/** A QP of libibverbs, first, with its queues. */
struct Qp {
	abi34::VerbsQp verbs;
	Service service = Service::kRc;
	DomainUse domain;
	Mapping mapping; /* SQ, RQ and record; none of XRC targets */
	QpRecord record;
	SendQueue sq;
	RecvQueue rq;
	bool has_rq = false;
	bool flushes = false;   /* created with TERNDV_QP_EX_WITH_FLUSH */
	PendingRequest pending; /* under the lock of the SQ */

	SharedRecvQueue *srq() const
	{
		return verbs.qp.srq ? &Srq::of(verbs.qp.srq)->queue : nullptr;
	}

	/* Where requests may be posted (10.3.1); libibverbs keeps the state. */
	bool takes_sends() const { return verbs.qp.state >= IBV_QPS_RTS; }
	bool takes_recvs() const { return verbs.qp.state >= IBV_QPS_INIT; }

	static Qp *of(ibv_qp *qp) { return reinterpret_cast<Qp *>(qp); }
	static Qp *of(ibv_qp_ex *qp) { return reinterpret_cast<Qp *>(qp); }
};

static_assert(offsetof(abi34::VerbsQp, qp) == 0 && offsetof(abi34::VerbsQp, qp_ex) == 0);

/**
 * Offers the ibv_wr_* calls on @qp that @wanted names, if @ops has them all. Returns 0 or
 * EOPNOTSUPP.
 */
int set_send_ops(Qp &qp, uint64_t wanted, OpSet ops);

} // namespace tern::provider
