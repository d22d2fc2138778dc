// SPDX-License-Identifier: GPL-2.0
/* Memory regions: those of processes, and what they share with those of the kernel. */
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "compat.h"
#include "ib.h"
#include "tern.h"

int tern_check_access(const struct tern_dev *tdev, int access)
{
	int supported = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
			IB_ACCESS_OPTIONAL;

	if (tdev->caps & TERN_CAP_ATOMIC)
		supported |= IB_ACCESS_REMOTE_ATOMIC;
	if (tdev->caps & TERN_CAP_MW)
		supported |= IB_ACCESS_MW_BIND;
	return access & ~supported ? -EOPNOTSUPP : 0;
}

/* The bits of tern_hw.h are those of the verbs. The optional ones are hints that we do not need. */
u8 tern_hw_access(int access)
{
	static_assert((int)IB_ACCESS_LOCAL_WRITE == TERN_ACCESS_LOCAL_WRITE);
	static_assert((int)IB_ACCESS_REMOTE_WRITE == TERN_ACCESS_REMOTE_WRITE);
	static_assert((int)IB_ACCESS_REMOTE_READ == TERN_ACCESS_REMOTE_READ);
	static_assert((int)IB_ACCESS_REMOTE_ATOMIC == TERN_ACCESS_REMOTE_ATOMIC);
	static_assert((int)IB_ACCESS_MW_BIND == TERN_ACCESS_MW_BIND);

	return access & ~IB_ACCESS_OPTIONAL;
}

/* Lists the pages of the region, in the largest size that suits the card and the memory. */
static int tern_mr_list_pages(struct tern_dev *tdev, struct tern_mr *mr, u64 virt_addr)
{
	u64 sizes = tdev->attr.page_size_cap &
		    GENMASK_ULL(TERN_MAX_PAGE_SHIFT, TERN_MIN_PAGE_SHIFT);
	unsigned long size = ib_umem_find_best_pgsz(mr->umem, sizes, virt_addr);
	struct ib_block_iter iter;
	u64 leaf = 0;
	int err;

	if (!size)
		return -EINVAL;
	err = tern_table_init(tdev, &mr->table, ib_umem_num_dma_blocks(mr->umem, size),
			      ilog2(size), GFP_KERNEL_ACCOUNT);
	if (err)
		return err;

	rdma_umem_for_each_dma_block(mr->umem, &iter, size)
		tern_table_set(&mr->table, leaf++, rdma_block_iter_dma_address(&iter));
	return 0;
}

static int tern_mr_create(struct tern_dev *tdev, struct tern_mr *mr, struct tern_pd *pd,
			  u64 length, u64 virt_addr, int access)
{
	struct tern_create_mr_params params = {
		.start = virt_addr,
		.length = length,
		.pdn = pd->pdn,
		.access = tern_hw_access(access),
		.variant = atomic_inc_return(&tdev->mr_variant),
	};
	int err;

	err = tern_mr_list_pages(tdev, mr, virt_addr);
	if (err)
		return err;

	tern_table_describe(&mr->table, virt_addr, &params.pages);
	err = tern_cmd_create_mr(tdev, &params, &mr->ibmr.lkey);
	if (err)
		tern_table_exit(tdev, &mr->table);
	return err;
}

struct ib_mr *tern_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			       int access, struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibpd->device);
	struct tern_mr *mr;
	int err;

	err = tern_udata_no_input(udata) ?: tern_check_access(tdev, access);
	if (err)
		return ERR_PTR(err);
	if (length > tdev->attr.max_mr_size)
		return ERR_PTR(-EINVAL);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->umem = ib_umem_get(ibpd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		goto err_mr;
	}
	err = tern_mr_create(tdev, mr, to_tpd(ibpd), length, virt_addr, access);
	if (err)
		goto err_umem;

	mr->ibmr.rkey = mr->ibmr.lkey;
	return &mr->ibmr;

err_umem:
	ib_umem_release(mr->umem);
err_mr:
	kfree(mr);
	return ERR_PTR(err);
}

int tern_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibmr->device);
	struct tern_mr *mr = to_tmr(ibmr);
	int err;

	err = tern_cmd_destroy_mr(tdev, ibmr->lkey);
	if (err)
		return err;
	tern_table_exit(tdev, &mr->table);
	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}
