// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "context.h"
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

static_assert(offsetof(VerbsXrcd, xrcd) == 0);

ibv_xrcd *open_xrcd(ibv_context *context, ibv_xrcd_init_attr *attr)
{
	return make_object<ibv_xrcd, VerbsXrcd>([&](VerbsXrcd &xrcd) {
		OpenXrcdCmd cmd = {};
		ib_uverbs_open_xrcd_resp resp = {};

		if (!Context::of(context)->has(TERN_CAP_XRC))
			return EOPNOTSUPP;
		return ibv_cmd_open_xrcd(context, &xrcd, sizeof(xrcd), attr, &cmd, sizeof(cmd),
		                         &resp, sizeof(resp));
	});
}

int close_xrcd(ibv_xrcd *ibv)
{
	auto *xrcd = reinterpret_cast<VerbsXrcd *>(ibv);

	return free_object(ibv_cmd_close_xrcd(xrcd), xrcd);
}

} // namespace tern::provider
