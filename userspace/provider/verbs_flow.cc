// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>

#include "owned.h"
#include "verbs.h"

namespace tern::provider {

using namespace tern::abi34;

ibv_flow *create_flow(ibv_qp *qp, ibv_flow_attr *attr)
{
	Owned<ibv_flow> flow = make_owned<ibv_flow>();
	if (!flow) {
		errno = ENOMEM;
		return nullptr;
	}

	if (const int err = ibv_cmd_create_flow(qp, flow.get(), attr, nullptr, 0)) {
		errno = err;
		return nullptr;
	}
	return flow.release();
}

int destroy_flow(ibv_flow *flow)
{
	if (const int err = ibv_cmd_destroy_flow(flow))
		return err;
	Owned<ibv_flow>{flow};
	return 0;
}

} // namespace tern::provider
