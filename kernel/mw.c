// SPDX-License-Identifier: GPL-2.0
/* Memory windows. Binding and invalidating them are work requests. */
#include <rdma/ib_verbs.h>

#include "ib.h"

static int tern_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct tern_ib *ib = to_tib(ibmw->device);
	u8 type = ibmw->type == IB_MW_TYPE_1 ? TERN_MW_TYPE_1 : TERN_MW_TYPE_2;
	u8 variant = atomic_inc_return(&ib->mr_variant);
	int err = tern_udata_no_input(udata);

	/* uverbs passes on what the process wrote. */
	if (ibmw->type != IB_MW_TYPE_1 && ibmw->type != IB_MW_TYPE_2)
		return -EINVAL;
	return err ?: tern_cmd_alloc_mw(ib->tdev, to_tpd(ibmw->pd)->pdn, type, variant,
				       &ibmw->rkey);
}

/* rkey is the key of the allocation. Binding changes it without the driver. */
static int tern_dealloc_mw(struct ib_mw *ibmw)
{
	tern_cmd_dealloc_mw(to_tdev(ibmw->device), ibmw->rkey);
	return 0;
}

const struct ib_device_ops tern_mw_ops = {
	.alloc_mw = tern_alloc_mw,
	.dealloc_mw = tern_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_mw, tern_mw, ibmw),
};
