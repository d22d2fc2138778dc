// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstddef>

#include <infiniband/verbs.h>

#include "tern/tern_hw.h"

namespace tern::provider {

/** An address handle: the object of libibverbs and the UD segment of each send that uses it. */
struct Ah {
	ibv_ah verbs;
	hw::tern_hw_ud_seg segment; /* without dest_qpn and qkey, which each request sets */

	static Ah *of(ibv_ah *ah) { return reinterpret_cast<Ah *>(ah); }
};

static_assert(offsetof(Ah, verbs) == 0);

} // namespace tern::provider
