// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "context.h"
#include "datapath/completion_queue.h"
#include "datapath/wall_clock.h"
#include "mapping.h"
#include "private_abi.h"
#include "verbs_pd.h"

namespace tern::provider {

/** A CQ: the object of libibverbs, and its queue. */
struct Cq {
	private_abi::VerbsCq verbs;
	DomainUse domain;
	Mapping mapping; /* ring and record */
	CompletionQueue queue;
	/* of an extended CQ, protected by the lock of the queue */
	Completion current;
	WallClock wall_clock;

	static Cq *of(ibv_cq *cq) { return reinterpret_cast<Cq *>(cq); }
	static Cq *of(ibv_cq_ex *cq) { return reinterpret_cast<Cq *>(cq); }
};

static_assert(offsetof(private_abi::VerbsCq, cq) == 0 &&
              offsetof(private_abi::VerbsCq, cq_ex) == 0);

/**
 * Sets the calls of the extended CQ @cq, with the read calls for @wc_flags (enum
 * ibv_create_cq_wc_flags). Returns 0, or EOPNOTSUPP if the card lacks one.
 */
int set_poll_ops(Cq &cq, uint64_t wc_flags, const Context &context);

} // namespace tern::provider
