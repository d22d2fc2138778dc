// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Converts completions to the types of the verbs API. */
#pragma once

#include <infiniband/verbs.h>

#include "datapath/completion_queue.h"

namespace tern::provider {

ibv_wc_opcode wc_opcode(const Completion &completion);

/** enum ibv_wc_flags */
unsigned wc_flags(const Completion &completion);

/** Immediate data in network byte order, or the invalidated rkey in host byte order. */
uint32_t wc_imm_data(const Completion &completion);

/** Polls up to @count completions into @wc. Returns their number, or -1 if a closed CQ has none. */
int poll_list(CompletionQueue &cq, int count, ibv_wc *wc);

} // namespace tern::provider
