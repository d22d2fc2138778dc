// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "context.h"
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

ibv_mw *alloc_mw(ibv_pd *pd, ibv_mw_type type)
{
	return make_object<ibv_mw>([&](ibv_mw &mw) {
		AllocMwCmd cmd = {};
		ib_uverbs_alloc_mw_resp resp = {};

		if (!Context::of(pd->context)->has(TERN_CAP_MW))
			return EOPNOTSUPP;
		return ibv_cmd_alloc_mw(pd, type, &mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	});
}

int dealloc_mw(ibv_mw *mw)
{
	return free_object(ibv_cmd_dealloc_mw(mw), mw);
}

/* For windows of type 1, as libibverbs has checked. */
int bind_mw(ibv_qp *qp, ibv_mw *mw, ibv_mw_bind *bind)
{
	ibv_send_wr wr = {}, *bad;

	wr.wr_id = bind->wr_id;
	wr.opcode = IBV_WR_BIND_MW;
	wr.send_flags = bind->send_flags;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind->bind_info;
	if (const int err = post_send(qp, &wr, &bad))
		return err;
	mw->rkey = wr.bind_mw.rkey;
	return 0;
}

} // namespace tern::provider
