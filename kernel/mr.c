// SPDX-License-Identifier: GPL-2.0
/* Memory regions of processes, and code that the regions of the kernel share. */
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "compat.h"
#include "ib.h"

int tern_check_access(const struct tern_dev *tdev, int access)
{
	int supported = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
			IB_ZERO_BASED | IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL;

	if (tdev->caps & TERN_CAP_ATOMIC)
		supported |= IB_ACCESS_REMOTE_ATOMIC;
	if (tdev->caps & TERN_CAP_MW)
		supported |= IB_ACCESS_MW_BIND;
	if (tdev->caps & TERN_CAP_FLUSH)
		supported |= IB_ACCESS_FLUSH_GLOBAL;
	return access & ~supported ? -EOPNOTSUPP : 0;
}

/*
 * tern_hw.h uses the bits of the verbs, except for FLUSH. The driver ignores the optional bits and
 * HUGETLB: leaves of page lists are as large as the pinned memory allows.
 */
u8 tern_hw_access(int access)
{
	static_assert((int)IB_ACCESS_LOCAL_WRITE == TERN_ACCESS_LOCAL_WRITE);
	static_assert((int)IB_ACCESS_REMOTE_WRITE == TERN_ACCESS_REMOTE_WRITE);
	static_assert((int)IB_ACCESS_REMOTE_READ == TERN_ACCESS_REMOTE_READ);
	static_assert((int)IB_ACCESS_REMOTE_ATOMIC == TERN_ACCESS_REMOTE_ATOMIC);
	static_assert((int)IB_ACCESS_MW_BIND == TERN_ACCESS_MW_BIND);
	static_assert((int)IB_ZERO_BASED == TERN_ACCESS_ZERO_BASED);

	return (access & ~(IB_ACCESS_OPTIONAL | IB_ACCESS_HUGETLB | IB_ACCESS_ON_DEMAND |
			   IB_ACCESS_FLUSH_GLOBAL)) |
	       (access & IB_ACCESS_FLUSH_GLOBAL ? TERN_ACCESS_FLUSH_GLOBAL : 0);
}

int tern_access_from_hw(u8 hw)
{
	return (hw & ~TERN_ACCESS_FLUSH_GLOBAL) |
	       (hw & TERN_ACCESS_FLUSH_GLOBAL ? IB_ACCESS_FLUSH_GLOBAL : 0);
}

/* Fills the page list, with the largest leaves that card and memory allow. */
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

/* Fills the page list of @mr from @umem. On success @mr owns @umem, on failure it is released. */
static int tern_mr_take(struct tern_dev *tdev, struct tern_mr *mr, struct ib_umem *umem,
			u64 virt_addr)
{
	int err;

	mr->umem = umem;
	err = tern_mr_list_pages(tdev, mr, virt_addr);
	if (err)
		ib_umem_release(umem);
	return err;
}

/* Pins [@start, @start + @length) of this process for @mr, with the access of @mr. */
int tern_mr_pin(struct ib_device *ibdev, struct tern_mr *mr, u64 start, u64 length, u64 virt_addr)
{
	struct tern_dev *tdev = to_tdev(ibdev);
	struct ib_umem *umem;

	if (length > tdev->attr.max_mr_size)
		return -EINVAL;
	umem = ib_umem_get_va(ibdev, start, length, mr->access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	return tern_mr_take(tdev, mr, umem, virt_addr);
}

/* Does nothing if the region has no pages. */
void tern_mr_unpin(struct tern_dev *tdev, struct tern_mr *mr)
{
	tern_table_exit(tdev, &mr->table);
	ib_umem_release(mr->umem);
}

struct tern_mr *tern_mr_alloc(int access)
{
	struct tern_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (mr)
		mr->access = access;
	return mr;
}

/* Creates @mr from @hw, in which it sets PD and variant. */
int tern_mr_create(struct tern_mr *mr, struct ib_pd *ibpd, struct tern_hw_create_mr *hw)
{
	struct tern_dev *tdev = to_tdev(ibpd->device);
	int err;

	hw->pdn = cpu_to_le32(to_tpd(ibpd)->pdn);
	hw->variant = atomic_inc_return(&to_tib(ibpd->device)->mr_variant);
	err = tern_cmd_create_mr(tdev, hw, &mr->ibmr.lkey);
	mr->ibmr.rkey = mr->ibmr.lkey;
	/* ib_core sets these for memory of the process only. */
	mr->ibmr.iova = le64_to_cpu(hw->start);
	mr->ibmr.length = le64_to_cpu(hw->length);
	return err;
}

/* A region of contiguous memory that needs no pinning. */
struct ib_mr *tern_create_plain_mr(struct ib_pd *ibpd, struct tern_hw_create_mr *hw)
{
	struct tern_mr *mr = tern_mr_alloc(0);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = tern_mr_create(mr, ibpd, hw);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

/* Creates the region of the pages of @mr. Frees @mr on failure. */
static struct ib_mr *tern_mr_create_pinned(struct tern_mr *mr, struct ib_pd *ibpd, u64 length,
					   u64 virt_addr)
{
	struct tern_hw_create_mr hw = {
		.start = cpu_to_le64(virt_addr),
		.length = cpu_to_le64(length),
		.access = tern_hw_access(mr->access),
	};
	int err;

	tern_table_describe(&mr->table, virt_addr, &hw.pages);
	err = tern_mr_create(mr, ibpd, &hw);
	if (err) {
		tern_mr_unpin(to_tdev(ibpd->device), mr);
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

static struct ib_mr *tern_reg_user(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
				   int access, struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibpd->device);
	int on_demand = tdev->caps & TERN_CAP_ODP ? IB_ACCESS_ON_DEMAND : 0;
	struct tern_mr *mr;
	int err;

	err = tern_udata_no_input(udata) ?: tern_check_access(tdev, access & ~on_demand);
	if (err)
		return ERR_PTR(err);
	if (access & IB_ACCESS_ON_DEMAND)
		return tern_reg_odp_mr(ibpd, start, length, virt_addr, access);

	mr = tern_mr_alloc(access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = tern_mr_pin(ibpd->device, mr, start, length, virt_addr);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return tern_mr_create_pinned(mr, ibpd, length, virt_addr);
}

/* Pins the buffer: its exporter does not move it while the region exists. */
static struct ib_mr *tern_reg_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				     int fd, int access, struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibpd->device);
	struct ib_umem_dmabuf *dmabuf;
	struct tern_mr *mr;
	int err;

	err = tern_udata_no_input(udata) ?: tern_check_access(tdev, access);
	if (err)
		return ERR_PTR(err);
	if (length > tdev->attr.max_mr_size)
		return ERR_PTR(-EINVAL);

	mr = tern_mr_alloc(access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	dmabuf = ib_umem_dmabuf_get_pinned(ibpd->device, offset, length, fd, access);
	err = PTR_ERR_OR_ZERO(dmabuf) ?: tern_mr_take(tdev, mr, &dmabuf->umem, virt_addr);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return tern_mr_create_pinned(mr, ibpd, length, virt_addr);
}

#ifdef TERN_HAVE_DMAH
struct ib_mr *tern_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			       int access, struct ib_dmah *dmah, struct ib_udata *udata)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return tern_reg_user(ibpd, start, length, virt_addr, access, udata);
}

struct ib_mr *tern_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				      int fd, int access, struct ib_dmah *dmah,
				      struct uverbs_attr_bundle *attrs)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return tern_reg_dmabuf(ibpd, offset, length, virt_addr, fd, access,
			       attrs ? &attrs->driver_udata : NULL);
}
#else
struct ib_mr *tern_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			       int access, struct ib_udata *udata)
{
	return tern_reg_user(ibpd, start, length, virt_addr, access, udata);
}

#ifdef TERN_HAVE_REG_DMABUF_ATTRS
struct ib_mr *tern_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				      int fd, int access, struct uverbs_attr_bundle *attrs)
{
	return tern_reg_dmabuf(ibpd, offset, length, virt_addr, fd, access,
			       attrs ? &attrs->driver_udata : NULL);
}
#else
struct ib_mr *tern_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				      int fd, int access, struct ib_udata *udata)
{
	return tern_reg_dmabuf(ibpd, offset, length, virt_addr, fd, access, udata);
}
#endif
#endif

int tern_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct tern_dev *tdev = to_tdev(ibmr->device);
	struct tern_mr *mr = to_tmr(ibmr);
	int err;

	err = tern_cmd_destroy_mr(tdev, ibmr->lkey);
	if (err)
		return err;
	if (mr->odp)
		tern_odp_release(mr);
	else
		tern_mr_unpin(tdev, mr);
	kfree(mr);
	return 0;
}
