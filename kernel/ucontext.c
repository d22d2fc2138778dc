// SPDX-License-Identifier: GPL-2.0
/* The context of a process: its doorbell page, its engine and its mappings. */
#include <linux/mm.h>
#include <linux/pci-p2pdma.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/tern-abi.h>
#include <rdma/uverbs_ioctl.h>

#include "compat.h"
#include "ib.h"

/* Memory that a process may map. */
struct tern_mmap_entry {
	struct rdma_user_mmap_entry rdma;
	enum {
		TERN_MMAP_BUF,
		TERN_MMAP_DOORBELL,
		TERN_MMAP_DM,
	} kind;
	union {
		struct tern_buf buf;
		u32 page;	/* the doorbell page, or the first page of device memory */
	};
};

static struct tern_mmap_entry *to_tentry(struct rdma_user_mmap_entry *rdma)
{
	return container_of(rdma, struct tern_mmap_entry, rdma);
}

/* ---- the doorbell page --------------------------------------------------------- */

static unsigned long tern_db_pfn(const struct tern_dev *tdev, u32 page)
{
	resource_size_t bar = pci_resource_start(tdev->pdev, TERN_BAR_DOORBELLS);

	return (bar + (u64)page * TERN_DB_PAGE_SIZE) >> PAGE_SHIFT;
}

static int tern_db_entry_create(struct tern_ucontext *uctx)
{
	struct tern_mmap_entry *entry;
	int err;

	entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	if (!entry)
		return -ENOMEM;
	entry->kind = TERN_MMAP_DOORBELL;
	entry->page = uctx->bar_page;

	err = rdma_user_mmap_entry_insert(&uctx->ibucontext, &entry->rdma, TERN_DB_PAGE_SIZE);
	if (err) {
		kfree(entry);
		return err;
	}
	uctx->db_entry = &entry->rdma;
	return 0;
}

/*
 * Successive pages of the BAR belong to different engines, so processes are spread over the
 * engines. The first page of each engine is the driver's.
 */
static int tern_db_page_create(struct tern_ib *ib, struct tern_ucontext *uctx)
{
	struct tern_dev *tdev = ib->tdev;
	int page, err;

	page = ida_alloc_range(&ib->db_ida, tdev->num_engines, tdev->db_pages - 1, GFP_KERNEL);
	if (page < 0)
		return page == -ENOSPC ? -ENOMEM : page;
	uctx->engine = &tdev->engines[page % tdev->num_engines];
	uctx->bar_page = page;
	uctx->db_page = page / tdev->num_engines;

	err = tern_db_entry_create(uctx);
	if (err)
		ida_free(&ib->db_ida, page);
	return err;
}

/* ib_core or the process has removed all mappings of the page. */
static void tern_db_page_destroy(struct tern_ib *ib, struct tern_ucontext *uctx)
{
	rdma_user_mmap_entry_remove(uctx->db_entry);
	ida_free(&ib->db_ida, uctx->bar_page);
}

/* ---- the context ---------------------------------------------------------------- */

void tern_ucontext_describe(struct tern_ucontext *uctx, struct tern_alloc_ucontext_resp *resp)
{
	struct tern_dev *tdev = to_tdev(uctx->ibucontext.device);

	*resp = (struct tern_alloc_ucontext_resp) {
		.db_key = rdma_user_mmap_get_offset(uctx->db_entry),
		.db_len = TERN_DB_PAGE_SIZE,
		.caps = tdev->caps,
		.max_inline = tdev->attr.max_inline,
		.max_send_sge = tdev->attr.max_send_sge,
		.max_recv_sge = tdev->attr.max_recv_sge,
	};
}

int tern_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata)
{
	struct tern_ib *ib = to_tib(ibucontext->device);
	struct tern_ucontext *uctx = to_tucontext(ibucontext);
	struct tern_alloc_ucontext_resp resp;
	int err;

	err = tern_udata_no_input(udata);
	if (err)
		return err;
	err = tern_db_page_create(ib, uctx);
	if (err)
		return err;

	tern_ucontext_describe(uctx, &resp);
	err = tern_udata_respond(udata, &resp, sizeof(resp));
	if (err)
		tern_db_page_destroy(ib, uctx);
	return err;
}

void tern_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
	struct tern_ucontext *uctx = to_tucontext(ibucontext);

	if (uctx->odp_wq)
		destroy_workqueue(uctx->odp_wq);
	tern_db_page_destroy(to_tib(ibucontext->device), uctx);
}

/* The engine of the calling process. Users in the kernel have the first. */
struct tern_engine *tern_engine_of_user(struct ib_device *ibdev, struct ib_udata *udata)
{
	struct tern_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct tern_ucontext, ibucontext);

	return uctx ? uctx->engine : &to_tdev(ibdev)->engines[0];
}

/* The doorbell page of the calling process in its engine, or TERN_DB_PAGE_KERNEL. */
u32 tern_db_page_of_user(struct ib_udata *udata)
{
	struct tern_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct tern_ucontext, ibucontext);

	return uctx ? uctx->db_page : TERN_DB_PAGE_KERNEL;
}

/* ---- memory of queues ------------------------------------------------------------- */

/*
 * Allocates memory that the process can map. The mmap entry owns the buffer, so that an mmap()
 * that races with the destruction of the queue never sees freed pages.
 */
int tern_ubuf_create(struct tern_ucontext *uctx, struct tern_ubuf *ubuf, size_t size)
{
	struct tern_dev *tdev = to_tdev(uctx->ibucontext.device);
	struct tern_mmap_entry *entry;
	int err;

	entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	if (!entry)
		return -ENOMEM;
	err = tern_buf_init(tdev, &entry->buf, size, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_entry;
	err = rdma_user_mmap_entry_insert(&uctx->ibucontext, &entry->rdma, PAGE_ALIGN(size));
	if (err)
		goto err_buf;

	ubuf->entry = &entry->rdma;
	ubuf->buf = &entry->buf;
	ubuf->key = rdma_user_mmap_get_offset(&entry->rdma);
	return 0;

err_buf:
	tern_buf_exit(tdev, &entry->buf);
err_entry:
	kfree(entry);
	return err;
}

void tern_ubuf_destroy(struct tern_ubuf *ubuf)
{
	rdma_user_mmap_entry_remove(ubuf->entry);
}

/* ---- device memory ---------------------------------------------------------------- */

/* On success the entry owns the @count pages from @page on. */
int tern_dm_entry_create(struct tern_ucontext *uctx, u32 page, u32 count,
			 struct rdma_user_mmap_entry **rdma)
{
	struct tern_mmap_entry *entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	int err;

	if (!entry)
		return -ENOMEM;
	entry->kind = TERN_MMAP_DM;
	entry->page = page;
	err = rdma_user_mmap_entry_insert(&uctx->ibucontext, &entry->rdma,
					  (size_t)count << PAGE_SHIFT);
	if (err) {
		kfree(entry);
		return err;
	}
	*rdma = &entry->rdma;
	return 0;
}

#ifdef TERN_HAVE_DMABUF_EXPORT
struct rdma_user_mmap_entry *tern_pgoff_to_mmap_entry(struct ib_ucontext *ibucontext, off_t pgoff)
{
	return rdma_user_mmap_entry_get_pgoff(ibucontext, pgoff);
}

/*
 * Tells ib_core what to export as a dma-buf, which keeps a reference to the entry. Only device
 * memory can be exported: the other entries are memory of the host, and doorbells.
 */
int tern_mmap_get_pfns(struct rdma_user_mmap_entry *rdma, struct phys_vec *phys_vec,
		       struct p2pdma_provider **provider)
{
	struct tern_dev *tdev = to_tdev(rdma->ucontext->device);
	const struct tern_mmap_entry *entry = to_tentry(rdma);

	if (entry->kind != TERN_MMAP_DM)
		return -EINVAL;
	phys_vec->paddr = tern_dm_address(tdev, entry->page);
	phys_vec->len = rdma->npages << PAGE_SHIFT;
	*provider = pcim_p2pdma_provider(tdev->pdev, TERN_BAR_DM);
	return *provider ? 0 : -EOPNOTSUPP;
}
#endif

/* ---- mmap --------------------------------------------------------------------------- */

void tern_mmap_free(struct rdma_user_mmap_entry *rdma)
{
	struct tern_ib *ib = to_tib(rdma->ucontext->device);
	struct tern_mmap_entry *entry = to_tentry(rdma);

	switch (entry->kind) {
	case TERN_MMAP_BUF:
		tern_buf_exit(ib->tdev, &entry->buf);
		break;
	case TERN_MMAP_DM:
		tern_dm_release(ib, entry->page, rdma->npages);
		break;
	case TERN_MMAP_DOORBELL:
		break;
	}
	kfree(entry);
}

/* Uncached: a doorbell is a single store that must not be delayed. */
static int tern_mmap_doorbell(struct ib_ucontext *ibucontext, struct vm_area_struct *vma,
			      struct tern_mmap_entry *entry)
{
	unsigned long pfn = tern_db_pfn(to_tdev(ibucontext->device), entry->page);

	return rdma_user_mmap_io(ibucontext, vma, pfn, TERN_DB_PAGE_SIZE,
				 pgprot_noncached(vma->vm_page_prot), &entry->rdma);
}

static int tern_mmap_dm(struct ib_ucontext *ibucontext, struct vm_area_struct *vma,
			struct tern_mmap_entry *entry)
{
	unsigned long pfn = PHYS_PFN(tern_dm_address(to_tdev(ibucontext->device), entry->page));

	return rdma_user_mmap_io(ibucontext, vma, pfn, entry->rdma.npages << PAGE_SHIFT,
				 pgprot_writecombine(vma->vm_page_prot), &entry->rdma);
}

/* vm_insert_page() takes a reference to each page, so the mapping may outlive the queue. */
static int tern_mmap_buf(struct vm_area_struct *vma, const struct tern_buf *buf)
{
	unsigned long va = vma->vm_start;
	u32 i;
	int err = 0;

	for (i = 0; !err && i < buf->npages; i++, va += PAGE_SIZE)
		err = vm_insert_page(vma, va, virt_to_page(buf->page[i].va));
	return err;
}

int tern_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *rdma;
	struct tern_mmap_entry *entry;
	int err = -EINVAL;

	rdma = rdma_user_mmap_entry_get(ibucontext, vma);
	if (!rdma)
		return -EINVAL;

	entry = to_tentry(rdma);
	switch (entry->kind) {
	case TERN_MMAP_BUF:
		err = tern_mmap_buf(vma, &entry->buf);
		break;
	case TERN_MMAP_DOORBELL:
		err = tern_mmap_doorbell(ibucontext, vma, entry);
		break;
	case TERN_MMAP_DM:
		err = tern_mmap_dm(ibucontext, vma, entry);
		break;
	}
	rdma_user_mmap_entry_put(rdma);
	return err;
}
