// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Converts work requests of the verbs API to those of the queues, and posts lists of them. */
#pragma once

#include <cerrno>

#include <infiniband/verbs.h>

#include "datapath/recv_queue.h"
#include "datapath/send_queue.h"
#include "datapath/shared_recv_queue.h"
#include "datapath/tag_queue.h"

namespace tern::provider {

/**
 * Posts the list @wr up to the first request that fails. Returns 0, or an errno with @bad_wr at
 * that request: EINVAL at the first one if the queue is closed.
 */
int post_send_list(SendQueue &sq, ibv_send_wr *wr, ibv_send_wr **bad_wr);
int post_recv_list(RecvQueue &rq, ibv_recv_wr *wr, ibv_recv_wr **bad_wr);
int post_recv_list(SharedRecvQueue &srq, ibv_recv_wr *wr, ibv_recv_wr **bad_wr);
int post_ops_list(TagQueue &queue, ibv_ops_wr *wr, ibv_ops_wr **bad_wr);

/** Fails the whole list @wr with EINVAL. */
template <class WorkRequest>
int refuse_list(WorkRequest *wr, WorkRequest **bad_wr)
{
	*bad_wr = wr;
	return EINVAL;
}

/** Sets the operands of @request to bind @mw with @rkey and @info. Returns 0 or EINVAL. */
int set_bind(const ibv_mw *mw, uint32_t rkey, const ibv_mw_bind_info &info, SendRequest &request);

/** Converts IBV_SEND_* to TERN_WQE_* without INLINE. False if a flag is unknown. */
bool wqe_flags(unsigned send_flags, uint8_t &flags);

} // namespace tern::provider
