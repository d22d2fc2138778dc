// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Between the structs of the verbs API and the queues. */
#pragma once

#include <cerrno>

#include <infiniband/verbs.h>

#include "datapath/recv_queue.h"
#include "datapath/send_queue.h"
#include "datapath/shared_recv_queue.h"
#include "datapath/tag_queue.h"

namespace tern::provider {

/**
 * Posts the list @wr, up to the first request that is refused: that one is left in @bad_wr
 * and the reason returned.
 */
int post_send_list(SendQueue &sq, ibv_send_wr *wr, ibv_send_wr **bad_wr);
int post_recv_list(RecvQueue &rq, ibv_recv_wr *wr, ibv_recv_wr **bad_wr);
int post_recv_list(SharedRecvQueue &srq, ibv_recv_wr *wr, ibv_recv_wr **bad_wr);
int post_ops_list(TagQueue &queue, ibv_ops_wr *wr, ibv_ops_wr **bad_wr);

/** Refuses the whole list @wr. */
template <class WorkRequest>
int refuse_list(WorkRequest *wr, WorkRequest **bad_wr)
{
	*bad_wr = wr;
	return EINVAL;
}

/** Makes @request bind @mw under @rkey as @info says. Returns 0 or EINVAL. */
int set_bind(const ibv_mw *mw, uint32_t rkey, const ibv_mw_bind_info &info, SendRequest &request);

/** The TERN_WQE_* flags of IBV_SEND_*, false if one is unknown. Inline is not among them. */
bool wqe_flags(unsigned send_flags, uint8_t &flags);

} // namespace tern::provider
