// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstddef>

#include <infiniband/verbs.h>

#include "tern/tern_hw.h"

namespace tern::provider {

/** An address handle of libibverbs, first, with the segment that each send to it carries. */
struct Ah {
	ibv_ah verbs;
	hw::tern_hw_ud_seg segment; /* dest_qpn and qkey are of the request */

	static Ah *of(ibv_ah *ah) { return reinterpret_cast<Ah *>(ah); }
};

static_assert(offsetof(Ah, verbs) == 0);

} // namespace tern::provider
