// SPDX-License-Identifier: GPL-2.0
/* ibv_rereg_mr: changes pages, PD or access of a region, not its key. */
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "ib.h"

/* Whether @access needs pages pinned for writing, or changes the start address. */
static bool tern_access_needs_trans(const struct tern_mr *mr, int access)
{
	return (ib_access_writable(access) && !mr->umem->writable) ||
	       (access ^ mr->access) & IB_ZERO_BASED;
}

/* Pins the same range again. Its addresses are those of the process that registered it. */
static int tern_pin_again(struct tern_mr *next, const struct tern_mr *mr)
{
	struct ib_umem *umem = mr->umem;

	if (umem->is_dmabuf)
		return -EOPNOTSUPP;
	if (umem->owning_mm != current->mm)
		return -EINVAL;
	return tern_mr_pin(mr->ibmr.device, next, umem->address, umem->length, mr->ibmr.iova);
}

/* Returns NULL: the object stays the same, and ib_core updates its PD and range. */
static struct ib_mr *tern_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
					u64 virt_addr, int access, struct ib_pd *ibpd,
					struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibmr->device);
	struct tern_mr *mr = to_tmr(ibmr);
	struct tern_mr next = { .access = flags & IB_MR_REREG_ACCESS ? access : mr->access };
	struct tern_hw_modify_mr hw = { .key = cpu_to_le32(ibmr->lkey) };
	int err;

	err = tern_udata_no_input(udata) ?: tern_check_access(tdev, next.access);
	if (err)
		return ERR_PTR(err);
	if (!mr->umem || mr->umem->is_odp || next.access & IB_ACCESS_ON_DEMAND)
		return ERR_PTR(-EOPNOTSUPP);

	if (flags & IB_MR_REREG_TRANS) {
		err = tern_mr_pin(ibmr->device, &next, start, length, virt_addr);
	} else if (tern_access_needs_trans(mr, next.access)) {
		length = mr->umem->length;
		virt_addr = mr->ibmr.iova;
		err = tern_pin_again(&next, mr);
	}
	if (err)
		return ERR_PTR(err);

	if (flags & IB_MR_REREG_PD) {
		hw.mask |= TERN_MODIFY_MR_PD;
		hw.to.pdn = cpu_to_le32(to_tpd(ibpd)->pdn);
	}
	if (flags & IB_MR_REREG_ACCESS) {
		hw.mask |= TERN_MODIFY_MR_ACCESS;
		hw.to.access = tern_hw_access(access);
	}
	if (next.umem) {
		hw.mask |= TERN_MODIFY_MR_TRANSLATION;
		hw.to.start = cpu_to_le64(virt_addr);
		hw.to.length = cpu_to_le64(length);
		tern_table_describe(&next.table, virt_addr, &hw.to.pages);
	}
	err = tern_cmd_modify_mr(tdev, &hw);
	if (err) {
		tern_mr_unpin(tdev, &next);
		return ERR_PTR(err);
	}

	mr->access = next.access;
	if (next.umem) {
		tern_mr_unpin(tdev, mr);
		mr->umem = next.umem;
		mr->table = next.table;
	}
	return NULL;
}

const struct ib_device_ops tern_rereg_ops = {
	.rereg_user_mr = tern_rereg_user_mr,
};
