// SPDX-License-Identifier: GPL-2.0
/* XRC domains. ib_core shares them and their QPs between processes. */
#include <rdma/ib_verbs.h>

#include "ib.h"

static int tern_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	int err = tern_udata_no_input(udata);

	return err ?: tern_cmd_alloc_xrcd(tern_engine_of_user(ibxrcd->device, udata),
					  tern_db_page_of_user(udata),
					  &to_txrcd(ibxrcd)->xrcdn);
}

static int tern_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	tern_cmd_dealloc_xrcd(to_tdev(ibxrcd->device), to_txrcd(ibxrcd)->xrcdn);
	return 0;
}

const struct ib_device_ops tern_xrcd_ops = {
	.alloc_xrcd = tern_alloc_xrcd,
	.dealloc_xrcd = tern_dealloc_xrcd,

	INIT_RDMA_OBJ_SIZE(ib_xrcd, tern_xrcd, ibxrcd),
};
