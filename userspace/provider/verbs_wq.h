// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "datapath/recv_queue.h"
#include "mapping.h"
#include "private_abi.h"
#include "verbs_pd.h"

namespace tern::provider {

/** A receive WQ: the object of libibverbs, and its queue. */
struct Wq {
	ibv_wq verbs;
	DomainUse domain;
	Mapping mapping; /* queue and record */
	QpRecord record;
	RecvQueue queue;

	static Wq *of(ibv_wq *wq) { return reinterpret_cast<Wq *>(wq); }
};

} // namespace tern::provider
