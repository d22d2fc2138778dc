// SPDX-License-Identifier: GPL-2.0
/* Device memory: pages of the card that processes map and regions may cover. */
#include <linux/bitmap.h>
#include <linux/io.h>
#include <linux/pci-p2pdma.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "compat.h"
#include "hw.h"
#include "ib.h"

/* Access rights of a region of device memory, enum ib_access_flags. */
#define TERN_DM_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND | IB_ZERO_BASED | \
			 IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_OPTIONAL)

/* The alignment of offset and length of such a region. */
#define TERN_DM_ALIGN	4

/* ---- pages ----------------------------------------------------------------------- */

/* Lets other devices reach the card's BARs through dma-bufs, if this kernel can do that. */
static int tern_dm_init_p2p(struct tern_dev *tdev)
{
#ifdef TERN_HAVE_DMABUF_EXPORT
	int err = pcim_p2pdma_init(tdev->pdev);

	return err == -EOPNOTSUPP ? 0 : err;
#else
	return 0;
#endif
}

int tern_dm_init(struct tern_ib *ib)
{
	struct tern_dm_pool *pool = &ib->dm;
	struct tern_dev *tdev = ib->tdev;
	u64 size = 0;
	int err;

	err = tern_dm_init_p2p(tdev);
	if (err)
		return err;
	if (tdev->caps & TERN_CAP_DM)
		size = min_t(u64, tern_reg_read(&tdev->engines[0], TERN_REG_DM_SIZE),
			     pci_resource_len(tdev->pdev, TERN_BAR_DM));
	mutex_init(&pool->lock);
	pool->pages = size >> PAGE_SHIFT;
	pool->used = bitmap_zalloc(max(pool->pages, 1U), GFP_KERNEL);
	return pool->used ? 0 : -ENOMEM;
}

void tern_dm_exit(struct tern_ib *ib)
{
	bitmap_free(ib->dm.used);
}

phys_addr_t tern_dm_address(const struct tern_dev *tdev, u32 page)
{
	return pci_resource_start(tdev->pdev, TERN_BAR_DM) + ((u64)page << PAGE_SHIFT);
}

/* Clears device memory before reuse: it may hold the data of another process. */
static int tern_dm_clear(struct tern_dev *tdev, u32 page, u32 count)
{
	size_t size = (size_t)count << PAGE_SHIFT;
	void __iomem *at = ioremap_wc(tern_dm_address(tdev, page), size);

	if (!at)
		return -ENOMEM;
	memset_io(at, 0, size);
	iounmap(at);
	return 0;
}

/* Reserves @count pages. The first is a multiple of @align, a power of two. */
static int tern_dm_reserve(struct tern_dm_pool *pool, u32 count, u32 align, u32 *page)
{
	unsigned long found;

	mutex_lock(&pool->lock);
	found = bitmap_find_next_zero_area(pool->used, pool->pages, 0, count, align - 1);
	if (found < pool->pages)
		bitmap_set(pool->used, found, count);
	mutex_unlock(&pool->lock);

	*page = found;
	return found < pool->pages ? 0 : -ENOMEM;
}

void tern_dm_release(struct tern_ib *ib, u32 page, u32 count)
{
	struct tern_dm_pool *pool = &ib->dm;

	mutex_lock(&pool->lock);
	bitmap_clear(pool->used, page, count);
	mutex_unlock(&pool->lock);
}

/* ---- objects ----------------------------------------------------------------------- */

/* Reserves and clears whole pages for @dm: processes share none. */
static int tern_dm_create(struct tern_ucontext *uctx, struct tern_dm *dm, u64 length, u32 log_align)
{
	struct tern_ib *ib = to_tib(uctx->ibucontext.device);
	u64 size = (u64)ib->dm.pages << PAGE_SHIFT;
	u32 count, page;
	int err;

	if (!length || log_align > 31 || 1ULL << log_align > size)
		return -EINVAL;
	if (length > size)
		return -ENOMEM;
	count = PFN_UP(length);
	err = tern_dm_reserve(&ib->dm, count, max(PFN_DOWN(1UL << log_align), 1UL), &page);
	if (err)
		return err;

	err = tern_dm_clear(ib->tdev, page, count) ?:
	      tern_dm_entry_create(uctx, page, count, &dm->entry);
	if (err)
		tern_dm_release(ib, page, count);
	dm->offset = (u64)page << PAGE_SHIFT;
	return err;
}

/* The mmap entry releases the pages after the last mapping is gone. */
static void tern_dm_destroy(struct tern_dm *dm)
{
	rdma_user_mmap_entry_remove(dm->entry);
	kfree(dm);
}

static struct ib_dm *tern_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibucontext,
				   struct ib_dm_alloc_attr *attr,
				   struct uverbs_attr_bundle *attrs)
{
	struct tern_dm *dm;
	u64 key;
	int err;

	if (attr->flags)
		return ERR_PTR(-EOPNOTSUPP);
	dm = kzalloc(sizeof(*dm), GFP_KERNEL_ACCOUNT);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	err = tern_dm_create(to_tucontext(ibucontext), dm, attr->length, attr->alignment);
	if (err) {
		kfree(dm);
		return ERR_PTR(err);
	}

	key = rdma_user_mmap_get_offset(dm->entry);
	err = uverbs_copy_to(attrs, TERN_ATTR_ALLOC_DM_RESP_KEY, &key, sizeof(key));
	if (err) {
		tern_dm_destroy(dm);
		return ERR_PTR(err);
	}
	return &dm->ibdm;
}

static int tern_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	tern_dm_destroy(to_tdm(ibdm));
	return 0;
}

/* ib_core has checked that the range is in @ibdm, and that the region is zero-based. */
static struct ib_mr *tern_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				    struct ib_dm_mr_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct tern_hw_create_mr hw = {
		.length = cpu_to_le64(attr->length),
		.pages.iova = cpu_to_le64(to_tdm(ibdm)->offset + attr->offset),
		.access = tern_hw_access(attr->access_flags),
		.flags = TERN_MR_DEVICE,
	};

	if (attr->access_flags & ~TERN_DM_ACCESS || attr->offset % TERN_DM_ALIGN ||
	    attr->length % TERN_DM_ALIGN)
		return ERR_PTR(-EINVAL);
	return tern_create_plain_mr(ibpd, &hw);
}

const struct ib_device_ops tern_dm_ops = {
	.alloc_dm = tern_alloc_dm,
	.dealloc_dm = tern_dealloc_dm,
	.reg_dm_mr = tern_reg_dm_mr,
};
