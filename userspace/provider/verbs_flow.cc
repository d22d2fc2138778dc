// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

ibv_flow *create_flow(ibv_qp *qp, ibv_flow_attr *attr)
{
	return make_object<ibv_flow>(
	        [&](ibv_flow &flow) { return ibv_cmd_create_flow(qp, &flow, attr, nullptr, 0); });
}

int destroy_flow(ibv_flow *flow)
{
	return free_object(ibv_cmd_destroy_flow(flow), flow);
}

} // namespace tern::provider
