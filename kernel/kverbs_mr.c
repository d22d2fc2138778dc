// SPDX-License-Identifier: GPL-2.0
/* Memory regions of users in the kernel: DMA regions and fast registration. */
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "ib.h"

/*
 * A region over the whole DMA address space. ib_core asks for one only for users that want an
 * unsafe global rkey; local access uses TERN_LKEY_LOCAL_DMA.
 */
struct ib_mr *tern_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct tern_dev *tdev = to_tdev(ibpd->device);
	struct tern_hw_create_mr hw = {
		.length = cpu_to_le64(tdev->attr.max_mr_size),
		.access = tern_hw_access(access),
	};
	int err = tern_check_access(tdev, access);

	return err ? ERR_PTR(err) : tern_create_plain_mr(ibpd, &hw);
}

/* ---- fast registration ---------------------------------------------------------------- */

static struct ib_mr *tern_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_pages)
{
	struct tern_dev *tdev = to_tdev(ibpd->device);
	struct tern_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_pages || max_pages > TERN_MAX_FAST_REG_PAGES)
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	err = tern_table_init(tdev, &mr->table, max_pages, PAGE_SHIFT, GFP_KERNEL);
	if (err)
		goto err_mr;
	err = tern_cmd_create_fast_mr(tdev, to_tpd(ibpd)->pdn, &mr->ibmr.lkey);
	if (err)
		goto err_table;
	mr->ibmr.rkey = mr->ibmr.lkey;
	return &mr->ibmr;

err_table:
	tern_table_exit(tdev, &mr->table);
err_mr:
	kfree(mr);
	return ERR_PTR(err);
}

static int tern_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct tern_mr *mr = to_tmr(ibmr);

	if (mr->mapped == mr->table.leaves)
		return -ENOMEM;
	tern_table_set(&mr->table, mr->mapped++, addr);
	return 0;
}

/* Fills the page list that a later REG_MR passes to the card. */
static int tern_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
			  unsigned int *offset)
{
	struct tern_mr *mr = to_tmr(ibmr);

	if (!is_power_of_2(ibmr->page_size) ||
	    !(ibmr->page_size & to_tdev(ibmr->device)->attr.page_size_cap))
		return -EINVAL;
	mr->mapped = 0;
	mr->table.shift = ilog2(ibmr->page_size);
	return ib_sg_to_pages(ibmr, sg, nents, offset, tern_set_page);
}

const struct ib_device_ops tern_fast_reg_ops = {
	.alloc_mr = tern_alloc_mr,
	.map_mr_sg = tern_map_mr_sg,
};
