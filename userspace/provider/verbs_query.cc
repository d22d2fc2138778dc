// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "context.h"
#include "verbs.h"
#include "verbs_qp.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

/* Whether @member lies within the @size bytes of the caller's @attr. */
template <class Member>
bool has_room(const ibv_device_attr_ex &attr, size_t size, const Member &member)
{
	const auto *start = reinterpret_cast<const char *>(&attr);
	const auto *end = reinterpret_cast<const char *>(&member + 1);

	return size >= static_cast<size_t>(end - start);
}

/* All services that send, except the GSI. */
constexpr ibv_packet_pacing_caps kPacingCaps = {
        .qp_rate_limit_min = 1,
        .qp_rate_limit_max = hw::TERN_MAX_RATE_LIMIT,
        .supported_qpts = 1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD |
                          1u << IBV_QPT_RAW_PACKET | 1u << IBV_QPT_XRC_SEND,
};

} // namespace

int query_device_ex(ibv_context *context, const ibv_query_device_ex_input *input,
                    ibv_device_attr_ex *attr, size_t attr_size)
{
	ib_uverbs_ex_query_device_resp resp = {};
	size_t resp_size = sizeof(resp);

	if (const int err =
	            ibv_cmd_query_device_any(context, input, attr, attr_size, &resp, &resp_size))
		return err;
	/* The driver reports the card's version: major in bits 31:16, minor in 15:0. */
	const auto version = static_cast<uint32_t>(resp.base.fw_ver);
	std::snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u",
	              version >> 16, version & 0xffff);
	/* Attributes that the response of uverbs has no field for. */
	if (has_room(*attr, attr_size, attr->packet_pacing_caps) &&
	    Context::of(context)->has(TERN_CAP_PACING))
		attr->packet_pacing_caps = kPacingCaps;
	if (has_room(*attr, attr_size, attr->rss_caps) && attr->rss_caps.supported_qpts) {
		attr->rss_caps.rx_hash_fields_mask = kHashFields;
		attr->rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
	}
	return 0;
}

int query_port(ibv_context *context, uint8_t port_num, ibv_port_attr *attr)
{
	QueryPortCmd cmd = {};

	return ibv_cmd_query_port(context, port_num, attr, &cmd, sizeof(cmd));
}

/* The clock goes to tv_nsec alone, where other providers report cycles. */
int query_rt_values(ibv_context *ibv, ibv_values_ex *values)
{
	const Context &context = *Context::of(ibv);

	if (values->comp_mask & ~uint32_t{IBV_VALUES_MASK_RAW_CLOCK})
		return EINVAL;
	if (!context.has(TERN_CAP_CLOCK))
		return EOPNOTSUPP;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
		values->raw_clock = {
		        .tv_sec = 0,
		        .tv_nsec = static_cast<long>(context.doorbell_page().clock()),
		};
	return 0;
}

} // namespace tern::provider
