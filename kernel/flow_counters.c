// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of flows: frames and bytes that all flows which name the object took. ib_core does not
 * destroy an object that a flow names.
 */
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>

#include "ib.h"

static int tern_create_counters(struct ib_counters *ibcounters, struct uverbs_attr_bundle *attrs)
{
	struct tern_ucontext *uctx = to_tucontext(attrs->context);

	return tern_cmd_create_counters(uctx->engine, uctx->db_page,
					&to_tcounters(ibcounters)->id);
}

static int tern_destroy_counters(struct ib_counters *ibcounters)
{
	tern_cmd_destroy_counters(to_tdev(ibcounters->device), to_tcounters(ibcounters)->id);
	return 0;
}

/* Reads the card each time, also for READ_ATTR_PREFER_CACHED. Further counters stay zero. */
static int tern_read_counters(struct ib_counters *ibcounters, struct ib_counters_read_attr *attr,
			      struct uverbs_attr_bundle *attrs)
{
	u64 values[TERN_COUNTER_COUNT];
	u32 count = min_t(u32, attr->ncounters, ARRAY_SIZE(values));
	int err;

	err = tern_cmd_read_counters(to_tdev(ibcounters->device), to_tcounters(ibcounters)->id,
				     &values[TERN_COUNTER_PACKETS], &values[TERN_COUNTER_BYTES]);
	if (err)
		return err;
	memcpy(attr->counters_buff, values, count * sizeof(*values));
	return 0;
}

const struct ib_device_ops tern_counters_ops = {
	.create_counters = tern_create_counters,
	.destroy_counters = tern_destroy_counters,
	.read_counters = tern_read_counters,

	INIT_RDMA_OBJ_SIZE(ib_counters, tern_counters, ibcounters),
};
