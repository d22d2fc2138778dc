// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

#include "context.h"
#include "owned.h"
#include "verbs.h"

namespace tern::provider {

using namespace tern::abi34;

static_assert(offsetof(VerbsXrcd, xrcd) == 0);

ibv_xrcd *open_xrcd(ibv_context *context, ibv_xrcd_init_attr *attr)
{
	if (!(Context::of(context)->state.caps & TERN_CAP_XRC)) {
		errno = EOPNOTSUPP;
		return nullptr;
	}
	Owned<VerbsXrcd> xrcd = make_owned<VerbsXrcd>();
	if (!xrcd) {
		errno = ENOMEM;
		return nullptr;
	}

	OpenXrcdCmd cmd = {};
	ib_uverbs_open_xrcd_resp resp = {};
	if (const int err = ibv_cmd_open_xrcd(context, xrcd.get(), sizeof(VerbsXrcd), attr, &cmd,
	                                      sizeof(cmd), &resp, sizeof(resp))) {
		errno = err;
		return nullptr;
	}
	return &xrcd.release()->xrcd;
}

int close_xrcd(ibv_xrcd *ibv)
{
	auto *xrcd = reinterpret_cast<VerbsXrcd *>(ibv);

	if (const int err = ibv_cmd_close_xrcd(xrcd))
		return err;
	Owned<VerbsXrcd>{xrcd};
	return 0;
}

} // namespace tern::provider
