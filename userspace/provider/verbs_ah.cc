// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/address_handle.h"

#include <cstring>

#include "private_abi.h"
#include "rdma/tern-abi.h"
#include "verbs.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

using CreateAhResponse = Response<CreateAhResp, tern_create_ah_resp>;
static_assert(CreateAhResponse::kPacked);

constexpr uint32_t kFlowLabelMask = 0xfffff;

hw::tern_hw_ud_seg segment_of(const ibv_ah_attr &attr, const tern_create_ah_resp &resp)
{
	hw::tern_hw_ud_seg segment = {};

	std::memcpy(segment.dgid, attr.grh.dgid.raw, sizeof(segment.dgid));
	std::memcpy(segment.dmac, resp.dmac, sizeof(segment.dmac));
	segment.sgid_index = attr.grh.sgid_index;
	segment.hop_limit = resp.hop_limit;
	segment.flow_label = attr.grh.flow_label & kFlowLabelMask;
	segment.udp_sport = resp.udp_sport;
	segment.traffic_class = attr.grh.traffic_class;
	segment.sl = attr.sl;
	return segment;
}

} // namespace

/* The kernel resolves the route, and refuses an address without GID. */
ibv_ah *create_ah(ibv_pd *pd, ibv_ah_attr *attr)
{
	return make_object<ibv_ah, Ah>([&](Ah &ah) {
		CreateAhResponse resp = {};

		if (const int err = ibv_cmd_create_ah(pd, &ah.verbs, attr, &resp, sizeof(resp)))
			return err;
		ah.segment = segment_of(*attr, resp.tern);
		return 0;
	});
}

int destroy_ah(ibv_ah *ah)
{
	return free_object(ibv_cmd_destroy_ah(ah), Ah::of(ah));
}

} // namespace tern::provider
