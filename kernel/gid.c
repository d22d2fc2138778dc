// SPDX-License-Identifier: GPL-2.0
/* The card's copy of the GID table. ib_core derives the table from the net_device's addresses. */
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "ib.h"
#include "port.h"

#define TERN_NO_VLAN	0xffff

int tern_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct tern_hw_set_gid hw = {
		.index = cpu_to_le32(attr->index),
		.type = attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP ? TERN_GID_ROCE_V2 :
								       TERN_GID_ROCE_V1,
	};
	struct tern_dev *tdev = to_tdev(attr->device);
	u16 vlan = TERN_NO_VLAN;
	bool own;
	int err;

	/*
	 * An upper device, such as a macvlan, has a MAC of its own. Without one the entry follows
	 * that of the port's net_device at once. When the MAC of an upper device changes, ib_core
	 * deletes its GIDs and adds them again.
	 */
	own = rcu_access_pointer(attr->ndev) == tern_port_netdev(tdev);
	err = rdma_read_gid_l2_fields(attr, &vlan, own ? NULL : hw.mac);
	if (err)
		return err;
	hw.vlan = cpu_to_le16(vlan);
	memcpy(hw.gid, attr->gid.raw, sizeof(hw.gid));
	return tern_cmd_set_gid(tdev, &hw);
}

/* Succeeds if the card is dead, since it has lost its table. */
int tern_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct tern_hw_set_gid hw = {
		.index = cpu_to_le32(attr->index),
		.type = TERN_GID_NONE,
		.vlan = cpu_to_le16(TERN_NO_VLAN),
	};
	struct tern_dev *tdev = to_tdev(attr->device);
	int err = tern_cmd_set_gid(tdev, &hw);

	return tern_is_dead(tdev) ? 0 : err;
}
