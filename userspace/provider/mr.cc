// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

#include "memory.h"
#include "verbs.h"

namespace tern::provider {

using namespace tern::abi34;

ibv_mr *reg_mr(ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access)
{
	Owned<VerbsMr> mr = make_owned<VerbsMr>();
	if (!mr) {
		errno = ENOMEM;
		return nullptr;
	}

	RegMrCmd cmd = {};
	ib_uverbs_reg_mr_resp resp = {};
	if (const int err = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, mr.get(), &cmd,
	                                   sizeof(cmd), &resp, sizeof(resp))) {
		errno = err;
		return nullptr;
	}
	return &mr.release()->mr;
}

int dereg_mr(VerbsMr *mr)
{
	if (const int err = ibv_cmd_dereg_mr(mr))
		return err;
	Owned<VerbsMr>{mr};
	return 0;
}

} // namespace tern::provider
