// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

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

int dealloc_pd(ibv_pd *pd)
{
	if (const int err = ibv_cmd_dealloc_pd(pd))
		return err;
	Owned<ibv_pd>{pd};
	return 0;
}

} // namespace tern::provider
