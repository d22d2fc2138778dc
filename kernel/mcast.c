// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups of datagram QPs. ib_core has checked the type of the QP and that the GID is a
 * multicast GID.
 */
#include <rdma/ib_verbs.h>

#include "ib.h"

/* RoCE has no LIDs. */
static int tern_attach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 lid)
{
	return tern_cmd_attach_mcast(to_tdev(ibqp->device), ibqp->qp_num, mgid->raw);
}

/* Succeeds if the card is dead, so that the QP can be destroyed. */
static int tern_detach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 lid)
{
	struct tern_dev *tdev = to_tdev(ibqp->device);
	int err = tern_cmd_detach_mcast(tdev, ibqp->qp_num, mgid->raw);

	return tern_is_dead(tdev) ? 0 : err;
}

const struct ib_device_ops tern_mcast_ops = {
	.attach_mcast = tern_attach_mcast,
	.detach_mcast = tern_detach_mcast,
};
