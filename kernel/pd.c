// SPDX-License-Identifier: GPL-2.0
/* Protection domains. */
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>

#include "ib.h"

int tern_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibpd->device);
	struct tern_alloc_pd_resp resp = {};
	struct tern_pd *pd = to_tpd(ibpd);
	int err;

	err = tern_udata_no_input(udata);
	if (err)
		return err;
	err = tern_cmd_alloc_pd(tern_engine_of_user(ibpd->device, udata),
				tern_db_page_of_user(udata), &pd->pdn);
	if (err || !udata)
		return err;

	resp.pdn = pd->pdn;
	err = tern_udata_respond(udata, &resp, sizeof(resp));
	if (err)
		tern_cmd_dealloc_pd(tdev, pd->pdn);
	return err;
}

int tern_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	tern_cmd_dealloc_pd(to_tdev(ibpd->device), to_tpd(ibpd)->pdn);
	return 0;
}
