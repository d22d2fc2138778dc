// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "private_abi.h"

namespace tern::provider {

/** Notes that a flow uses @counters: from now on nothing can be attached to them. */
void add_counters_user(ibv_counters *counters);

/** Undoes add_counters_user(), after the flow is gone. */
void drop_counters_user(ibv_counters *counters);

} // namespace tern::provider
