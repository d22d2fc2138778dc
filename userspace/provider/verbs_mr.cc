// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "context.h"
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

static_assert(offsetof(VerbsMr, mr) == 0);

ibv_mr *reg_mr(ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access)
{
	return make_object<ibv_mr, VerbsMr>([&](VerbsMr &mr) {
		RegMrCmd cmd = {};
		ib_uverbs_reg_mr_resp resp = {};
		return ibv_cmd_reg_mr(pd, addr, length, hca_va, access, &mr, &cmd, sizeof(cmd),
		                      &resp, sizeof(resp));
	});
}

ibv_mr *reg_dmabuf_mr(ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	return make_object<ibv_mr, VerbsMr>([&](VerbsMr &mr) {
		return ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, &mr, nullptr);
	});
}

/* The card knows the key, so that there is nothing to make. */
ibv_mr *alloc_null_mr(ibv_pd *pd)
{
	return make_object<ibv_mr, VerbsMr>([&](VerbsMr &mr) {
		if (!Context::of(pd->context)->has(TERN_CAP_NULL_KEY))
			return EOPNOTSUPP;
		mr.mr.context = pd->context;
		mr.mr.pd = pd;
		mr.mr.length = SIZE_MAX;
		mr.mr.lkey = TERN_LKEY_NULL;
		mr.type = kNullMr;
		return 0;
	});
}

int rereg_mr(VerbsMr *mr, int flags, ibv_pd *pd, void *addr, size_t length, int access)
{
	ReregMrCmd cmd = {};
	ib_uverbs_rereg_mr_resp resp = {};

	return ibv_cmd_rereg_mr(mr, static_cast<uint32_t>(flags), addr, length,
	                        reinterpret_cast<uintptr_t>(addr), access, pd, &cmd, sizeof(cmd),
	                        &resp, sizeof(resp));
}

int dereg_mr(VerbsMr *mr)
{
	return free_object(mr->type == kNullMr ? 0 : ibv_cmd_dereg_mr(mr), mr);
}

ibv_mr *import_mr(ibv_pd *pd, uint32_t handle)
{
	return make_object<ibv_mr, VerbsMr>(
	        [&](VerbsMr &mr) { return ibv_cmd_query_mr(pd, &mr, handle); });
}

void unimport_mr(ibv_mr *mr)
{
	Owned<VerbsMr>{reinterpret_cast<VerbsMr *>(mr)};
}

} // namespace tern::provider
