// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "datapath/shared_recv_queue.h"
#include "datapath/tag_queue.h"
#include "mapping.h"
#include "private_abi.h"
#include "verbs_pd.h"

namespace tern::provider {

/** An SRQ: the object of libibverbs, and its queues. */
struct Srq {
	private_abi::VerbsSrq verbs;
	DomainUse domain;
	Mapping mapping; /* slots, index ring, record, tag operations */
	uint32_t srqn = 0;
	SharedRecvQueue queue;
	TagQueue tags; /* of type IBV_SRQT_TM */

	static Srq *of(ibv_srq *srq) { return reinterpret_cast<Srq *>(srq); }
	bool is_xrc() const { return verbs.srq_type == IBV_SRQT_XRC; }
	bool has_tags() const { return verbs.srq_type == IBV_SRQT_TM; }
	bool has_cq() const { return is_xrc() || has_tags(); }
};

static_assert(offsetof(private_abi::VerbsSrq, srq) == 0);

} // namespace tern::provider
