// SPDX-License-Identifier: GPL-2.0
/* The card's copy of the GID table. ib_core derives the table from the net_device's addresses. */
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "ib.h"

#define TERN_NO_VLAN	0xffff

int tern_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct tern_set_gid_params params = {
		.index = attr->index,
		.type = attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP ? TERN_GID_ROCE_V2 :
								       TERN_GID_ROCE_V1,
		.vlan = TERN_NO_VLAN,
		.gid = attr->gid.raw,
	};
	int err;

	err = rdma_read_gid_l2_fields(attr, &params.vlan, NULL);
	if (err)
		return err;
	return tern_cmd_set_gid(to_tdev(attr->device), &params);
}

/* Succeeds if the card is dead, since it has lost its table. */
int tern_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct tern_set_gid_params params = {
		.index = attr->index,
		.type = TERN_GID_NONE,
		.vlan = TERN_NO_VLAN,
	};
	struct tern_dev *tdev = to_tdev(attr->device);
	int err = tern_cmd_set_gid(tdev, &params);

	return tern_is_dead(tdev) ? 0 : err;
}
