// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "abi34.h"
#include "completion_queue.h"
#include "mapping.h"

namespace tern::provider {

/** A CQ of libibverbs, first, with its queue. */
struct Cq {
	abi34::VerbsCq verbs;
	Mapping mapping; /* ring and record */
	CompletionQueue queue;

	static Cq *of(ibv_cq *cq) { return reinterpret_cast<Cq *>(cq); }
};

static_assert(offsetof(abi34::VerbsCq, cq) == 0);

} // namespace tern::provider
