// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

#include <rdma/ib_user_ioctl_cmds.h>

#include "ioctl.h"
#include "memory.h"
#include "rdma/tern-abi.h"
#include "verbs.h"

namespace tern::provider {

using namespace tern::abi34;

namespace {

using AllocPdResponse = Response<AllocPdResp, tern_alloc_pd_resp>;
static_assert(AllocPdResponse::kPacked);

} // namespace

ibv_pd *alloc_pd(ibv_context *context)
{
	Owned<ibv_pd> pd = make_owned<ibv_pd>();
	if (!pd) {
		errno = ENOMEM;
		return nullptr;
	}

	AllocPdCmd cmd = {};
	AllocPdResponse resp = {};
	if (const int err =
	            ibv_cmd_alloc_pd(context, pd.get(), &cmd, sizeof(cmd), &resp, sizeof(resp))) {
		errno = err;
		return nullptr;
	}
	return pd.release();
}

ibv_pd *import_pd(ibv_context *context, uint32_t handle)
{
	tern_alloc_pd_resp resp = {}; /* that there is an answer is all that we want */

	if (const int err = Ioctl<2>(UVERBS_OBJECT_PD, TERN_METHOD_PD_QUERY)
	                            .object(TERN_ATTR_PD_QUERY_HANDLE, handle)
	                            .out(TERN_ATTR_PD_QUERY_RESP, resp)
	                            .execute(context)) {
		errno = err;
		return nullptr;
	}
	Owned<ibv_pd> pd = make_owned<ibv_pd>();
	if (!pd) {
		errno = ENOMEM;
		return nullptr;
	}
	pd->context = context;
	pd->handle = handle;
	return pd.release();
}

void unimport_pd(ibv_pd *pd)
{
	Owned<ibv_pd>{pd};
}

int dealloc_pd(ibv_pd *pd)
{
	if (const int err = ibv_cmd_dealloc_pd(pd))
		return err;
	Owned<ibv_pd>{pd};
	return 0;
}

} // namespace tern::provider
