// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* From completions to what the verbs API says of them. */
#pragma once

#include <infiniband/verbs.h>

#include "datapath/completion_queue.h"

namespace tern::provider {

ibv_wc_opcode wc_opcode(const Completion &completion);

/** enum ibv_wc_flags */
unsigned wc_flags(const Completion &completion);

/** Immediate data in network order, or the key that was invalidated in the host's. */
uint32_t wc_imm_data(const Completion &completion);

/** Takes up to @count completions and returns how many there were. */
int poll_list(CompletionQueue &cq, int count, ibv_wc *wc);

} // namespace tern::provider
