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

/*
 * ib_core does not destroy a QP if detaching it failed, so this never fails. There may be nothing
 * to detach: the card attaches a QP to a group once, but ib_core counts attachments with different
 * LIDs separately. A QP that the card has not detached leaves its groups when it is destroyed.
 */
static int tern_detach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 lid)
{
	tern_cmd_detach_mcast(to_tdev(ibqp->device), ibqp->qp_num, mgid->raw);
	return 0;
}

const struct ib_device_ops tern_mcast_ops = {
	.attach_mcast = tern_attach_mcast,
	.detach_mcast = tern_detach_mcast,
};
