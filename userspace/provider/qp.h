// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "abi34.h"
#include "mapping.h"
#include "recv_queue.h"
#include "send_queue.h"

namespace tern::provider {

/** The request that an ibv_wr_* call began and its data setter, or the next call, ends. */
struct PendingRequest {
	SendRequest request;
	bool active = false;
	int error = 0; /* the first of this list */
};

/** A QP of libibverbs, first, with its queues. */
struct Qp {
	abi34::VerbsQp verbs;
	Mapping mapping; /* SQ, RQ and record */
	QpRecord record;
	SendQueue sq;
	RecvQueue rq;
	bool has_rq = false;
	PendingRequest pending; /* under the lock of the SQ */

	static Qp *of(ibv_qp *qp) { return reinterpret_cast<Qp *>(qp); }
	static Qp *of(ibv_qp_ex *qp) { return reinterpret_cast<Qp *>(qp); }
};

static_assert(offsetof(abi34::VerbsQp, qp) == 0 && offsetof(abi34::VerbsQp, qp_ex) == 0);

/** Offers the ibv_wr_* calls on @qp that @ops names. Returns 0 or EOPNOTSUPP. */
int set_send_ops(Qp &qp, uint64_t ops);

} // namespace tern::provider
