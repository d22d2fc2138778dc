// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "context.h"
#include "service.h"
#include "verbs.h"

namespace tern::provider {

using namespace tern::abi34;

int query_device_ex(ibv_context *context, const ibv_query_device_ex_input *input,
                    ibv_device_attr_ex *attr, size_t attr_size)
{
	ib_uverbs_ex_query_device_resp resp = {};
	size_t resp_size = sizeof(resp);

	if (const int err =
	            ibv_cmd_query_device_any(context, input, attr, attr_size, &resp, &resp_size))
		return err;
	/* The driver hands on what the card tells: the major in 31:16, the minor in 15:0. */
	const auto version = static_cast<uint32_t>(resp.base.fw_ver);
	std::snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u",
	              version >> 16, version & 0xffff);
	/* What uverbs has no field for. */
	if (attr_size >= offsetof(ibv_device_attr_ex, rss_caps) + sizeof(attr->rss_caps) &&
	    attr->rss_caps.supported_qpts) {
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

/* The clock is all nanoseconds of raw_clock, as applications know it from other cards' cycles. */
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
