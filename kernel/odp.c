// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging: regions of processes without pinned pages. The driver maps pages when the card
 * faults on them, and unmaps them when the kernel invalidates them.
 *
 * Memory reclaim may invalidate pages, which takes umem_mutex. So a holder of umem_mutex must not
 * allocate memory. The driver allocates tables before it takes the mutex, and SYNC_MR, which it
 * sends under the mutex, needs no memory and no lock whose holder allocates.
 */
#include <linux/memcontrol.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <rdma/ib_umem_odp.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "compat.h"
#include "ib.h"
#include "trace.h"

/* What one umem of an implicit region covers: one table of pages. */
#define TERN_CHILD_SIZE	SZ_2M
/* What four levels of tables can map. */
#define TERN_IMPLICIT_MAX	BIT_ULL(48)
/* Marks children that had no pages when tern_odp_check_empty() tested them. */
#define TERN_CHILD_EMPTY	XA_MARK_0
/* An empty child is kept this long, since pages are often mapped again soon after invalidation. */
#define TERN_REAP_DELAY		HZ
/* Attempts to map pages that are invalidated meanwhile. Each takes up to a second. */
#define TERN_ODP_TRIES		10
/* The maximum number of work items of a process that run at the same time. */
#define TERN_ODP_WORKERS	32

struct tern_odp {
	struct tern_mr *mr;
	struct workqueue_struct *wq;	/* tern_odp_queue() */
	struct ib_umem_odp *umem;	/* implicit region: the root, without pages */
	u64 start;			/* address of the first byte in the process */
	u64 delta;			/* address in the process minus address in the region */
	u64 base;			/* address of leaf 0 in the process */
	u64 size;			/* bytes */
	struct mem_cgroup *memcg;	/* of the registering process; charged for tables */

	struct mutex lock;		/* protects adding tables and children */
	struct tern_sparse sparse;
	struct xarray children;		/* implicit region: by address / TERN_CHILD_SIZE */

	/*
	 * Held for reading while pages are mapped with faults, else for writing: the core walks the
	 * page tables into the umem's list of page frames before it takes umem_mutex. A walk that
	 * faults leaves each entry valid. A walk that does not fault clears the entries that it
	 * found empty, even if a fault has filled them meanwhile. Code that removes children and
	 * tables holds it for writing, too. Where walks with faults may not run at the same time
	 * (TERN_ODP_WALKS_AT_ONCE), it is always held for writing.
	 */
	struct rw_semaphore walk;
	struct delayed_work reap;

	/* Counts work that maps or removes pages, and the region itself while it is registered. */
	refcount_t users;
	struct completion unused;

	atomic64_t faults;
	atomic64_t prefetched;
	atomic64_t invalidations;
};

/* ---- map and invalidate --------------------------------------------------------- */

static u64 tern_odp_leaf(const struct tern_odp *odp, u64 addr)
{
	return (addr - odp->base) >> odp->sparse.shift;
}

static void tern_odp_put(struct tern_odp *odp)
{
	if (refcount_dec_and_test(&odp->users))
		complete(&odp->unused);
}

/* Has @umem removed later if it is a child and has no pages. The caller holds its umem_mutex. */
static void tern_odp_check_empty(struct tern_odp *odp, struct ib_umem_odp *umem)
{
	if (umem == odp->umem || umem->npages)
		return;
	xa_set_mark(&odp->children, ib_umem_start(umem) / TERN_CHILD_SIZE, TERN_CHILD_EMPTY);
	if (!refcount_inc_not_zero(&odp->users))
		return;		/* the region goes, and all children with it */
	if (!queue_delayed_work(odp->wq, &odp->reap, TERN_REAP_DELAY))
		tern_odp_put(odp);
}

static bool tern_odp_invalidate(struct mmu_interval_notifier *mni,
				const struct mmu_notifier_range *range, unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp, notifier);
	struct tern_odp *odp;
	u64 start, end;

	if (!mmu_notifier_range_blockable(range))
		return false;

	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(mni, seq);
	if (!umem->npages)
		goto out;

	odp = umem->private;
	start = max_t(u64, ib_umem_start(umem), range->start);
	end = min_t(u64, ib_umem_end(umem), range->end);
	/* The command fails if the region or the card is gone, and then it is not needed. */
	if (tern_sparse_clear(&odp->sparse, tern_odp_leaf(odp, start),
			      tern_odp_leaf(odp, end - 1)))
		tern_cmd_sync_mr(to_tdev(umem->umem.ibdev), odp->mr->ibmr.lkey);
	ib_umem_odp_unmap_dma_pages(umem, start, end);
	tern_odp_check_empty(odp, umem);
	atomic64_inc(&odp->invalidations);
	trace_tern_invalidate(to_tdev(umem->umem.ibdev), odp->mr->ibmr.lkey, start, end);
out:
	mutex_unlock(&umem->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops tern_odp_ops = {
	.invalidate = tern_odp_invalidate,
};

/*
 * Writes the mapped pages of [@addr, @end) into the card's page table. Before Linux 6.16, ib_core
 * clears the write permission of a mapped page when it faults that page in for reading. The card
 * may have written to the page before, and ib_core marks a page dirty at unmapping only if the page
 * has write permission. So this function restores the permission of pages that the card may write.
 */
static int tern_odp_show(struct tern_odp *odp, struct ib_umem_odp *umem, u64 addr, u64 end)
{
	u64 size = BIT_ULL(umem->page_shift);
	dma_addr_t dma;
	size_t index;
	u64 leaf;
	int err;

	for (addr = ALIGN_DOWN(addr, size); addr < end; addr += size) {
		index = (addr - ib_umem_start(umem)) >> umem->page_shift;
		if (!tern_odp_present(umem, index))
			continue;
		err = tern_odp_dma(umem, index, &dma);
		if (err)
			return err;
		leaf = tern_odp_leaf(odp, addr);
		if (tern_sparse_writable(&odp->sparse, leaf))
			tern_odp_keep_writable(umem, index);
		tern_sparse_set(&odp->sparse, leaf,
				dma | TERN_PAGE_PRESENT |
				(tern_odp_writable(umem, index) ? TERN_PAGE_WRITE : 0));
	}
	return 0;
}

static void tern_odp_walk_begin(struct tern_odp *odp, bool fault)
{
	if (fault && TERN_ODP_WALKS_AT_ONCE)
		down_read(&odp->walk);
	else
		down_write(&odp->walk);
}

static void tern_odp_walk_end(struct tern_odp *odp, bool fault)
{
	if (fault && TERN_ODP_WALKS_AT_ONCE)
		up_read(&odp->walk);
	else
		up_write(&odp->walk);
}

/*
 * Maps the pages of [@addr, @end) of @umem; without @fault only those in memory. The caller holds
 * the lock of walks.
 */
static int tern_odp_map(struct tern_odp *odp, struct ib_umem_odp *umem, u64 addr, u64 end,
			bool write, bool fault)
{
	u64 access = TERN_ODP_READ | (write ? TERN_ODP_WRITE : 0);
	int pages, err, tries = 0;

	mutex_lock(&odp->lock);
	err = tern_sparse_reach(to_tdev(umem->umem.ibdev), &odp->sparse, tern_odp_leaf(odp, addr),
				tern_odp_leaf(odp, end - 1));
	mutex_unlock(&odp->lock);
	if (err) {
		/* A new child has no pages. If it gets none, nothing else has it reaped. */
		mutex_lock(&umem->umem_mutex);
		tern_odp_check_empty(odp, umem);
		mutex_unlock(&umem->umem_mutex);
		return err;
	}

	/*
	 * The core gives up after a second of concurrent invalidations. Faulting in a page for
	 * writing that was a zero page invalidates it, too.
	 */
	do {
		pages = ib_umem_odp_map_dma_and_lock(umem, addr, end - addr, access, fault);
	} while (pages == -EBUSY && ++tries < TERN_ODP_TRIES);
	if (pages < 0) {
		mutex_lock(&umem->umem_mutex);
		err = pages;
	} else {
		err = tern_odp_show(odp, umem, addr, end);
	}
	tern_odp_check_empty(odp, umem);
	mutex_unlock(&umem->umem_mutex);
	return err;
}

/* Returns the umem that covers @addr. Creates the child of an implicit region if needed. */
static struct ib_umem_odp *tern_odp_umem_at(struct tern_odp *odp, u64 addr)
{
	unsigned long index = addr / TERN_CHILD_SIZE;
	struct ib_umem_odp *child;
	int err;

	if (!odp->umem->is_implicit_odp)
		return odp->umem;
	mutex_lock(&odp->lock);
	child = xa_load(&odp->children, index);
	if (child)
		goto out;
	child = ib_umem_odp_alloc_child(odp->umem, index * TERN_CHILD_SIZE, TERN_CHILD_SIZE,
					&tern_odp_ops);
	if (IS_ERR(child))
		goto out;
	child->private = odp;
	err = xa_err(xa_store(&odp->children, index, child, GFP_KERNEL_ACCOUNT));
	if (err) {
		ib_umem_odp_release(child);
		child = ERR_PTR(err);
	}
out:
	mutex_unlock(&odp->lock);
	return child;
}

/* As tern_odp_map(), for any region. @addr is an address in the region. */
static int tern_odp_bring(struct tern_odp *odp, u64 addr, u64 length, bool write, bool fault)
{
	u64 end = addr + odp->delta + length;
	struct mem_cgroup *outer;
	struct ib_umem_odp *umem;
	int err = 0;
	u64 next;

	if (write && !odp->umem->umem.writable)
		return -EPERM;
	outer = set_active_memcg(odp->memcg);
	for (addr += odp->delta; !err && addr < end; addr = next) {
		next = end;
		tern_odp_walk_begin(odp, fault);
		umem = tern_odp_umem_at(odp, addr);
		err = PTR_ERR_OR_ZERO(umem);
		if (!err) {
			next = min_t(u64, ib_umem_end(umem), end);
			err = tern_odp_map(odp, umem, addr, next, write, fault);
		}
		tern_odp_walk_end(odp, fault);
	}
	set_active_memcg(outer);
	return err;
}

/* ---- removing what is empty ---------------------------------------------------------- */

static bool tern_odp_is_empty(struct ib_umem_odp *umem)
{
	bool empty;

	mutex_lock(&umem->umem_mutex);
	empty = !umem->npages;
	mutex_unlock(&umem->umem_mutex);
	return empty;
}

/* Removes the children of an implicit region that have no pages, and their tables. */
static void tern_odp_reap_work(struct work_struct *work)
{
	struct tern_odp *odp = container_of(to_delayed_work(work), struct tern_odp, reap);
	struct tern_dev *tdev = to_tdev(odp->umem->umem.ibdev);
	struct ib_umem_odp *child;
	unsigned long index;
	LIST_HEAD(tables);

	down_write(&odp->walk);
	xa_for_each_marked(&odp->children, index, child, TERN_CHILD_EMPTY) {
		/* Clear the mark before the look: an invalidation after the look sets it again. */
		xa_clear_mark(&odp->children, index, TERN_CHILD_EMPTY);
		if (!tern_odp_is_empty(child))
			continue;
		xa_erase(&odp->children, index);
		tern_sparse_detach(&odp->sparse, tern_odp_leaf(odp, ib_umem_start(child)), &tables);
		ib_umem_odp_release(child);
		cond_resched();
	}
	if (!list_empty(&tables)) {
		/* The command fails if the region or card is gone. Nothing reads tables then. */
		tern_cmd_sync_mr(tdev, odp->mr->ibmr.lkey);
		tern_sparse_free(tdev, &tables);
	}
	up_write(&odp->walk);
	tern_odp_put(odp);
}

/* ---- finding regions --------------------------------------------------------------- */

static struct tern_odp *tern_odp_get(struct tern_ib *ib, u32 key)
{
	struct tern_odp *odp;

	xa_lock(&ib->odps);
	odp = xa_load(&ib->odps, key >> 8);
	if (odp && (odp->mr->ibmr.lkey != key || !refcount_inc_not_zero(&odp->users)))
		odp = NULL;
	xa_unlock(&ib->odps);
	return odp;
}

/* Whether [@addr, @addr + @length), addresses in the region, is in it. */
static bool tern_odp_contains(const struct tern_odp *odp, u64 addr, u64 length)
{
	u64 offset = addr + odp->delta - odp->start;

	return offset <= odp->size && length <= odp->size - offset;
}

/* ---- faults of the card ------------------------------------------------------------- */

/*
 * The card may ask for more than the process has mapped. The QP can go on if the first page is
 * there.
 */
static u8 tern_odp_bring_fault(struct tern_ib *ib, const struct tern_hw_fault *fault)
{
	u64 addr = le64_to_cpu(fault->addr);
	u32 length = le32_to_cpu(fault->length);
	struct tern_odp *odp;
	int err = -EFAULT;

	odp = tern_odp_get(ib, le32_to_cpu(fault->key));
	if (!odp)
		return TERN_RESUME_FAIL;
	atomic64_inc(&odp->faults);
	if (tern_odp_contains(odp, addr, length)) {
		err = tern_odp_bring(odp, addr, length, fault->write, true);
		if (err)
			err = tern_odp_bring(odp, addr, 1, fault->write, true);
	}
	tern_odp_put(odp);
	return err ? TERN_RESUME_FAIL : TERN_RESUME_RETRY;
}

static u8 tern_odp_resolve(struct tern_ib *ib, u32 qpn, const struct tern_hw_fault *fault)
{
	u8 resume;

	if (!fault->length)
		return TERN_RESUME_NONE;
	resume = tern_odp_bring_fault(ib, fault);
	trace_tern_page_fault(ib->tdev, qpn, fault, resume);
	return resume;
}

/*
 * Resolves the page faults of a QP. That may take for ever, so it happens without the lock of the
 * QP, which may have been destroyed meanwhile. The command fails if the card is dead.
 */
void tern_odp_bring_work(struct work_struct *work)
{
	struct tern_qp *qp = container_of(work, struct tern_qp, bring_work);
	struct tern_ib *ib = to_tib(qp->ibqp.device);
	u8 requester, responder;

	requester = tern_odp_resolve(ib, qp->core.qpn, &qp->faults.requester);
	responder = tern_odp_resolve(ib, qp->core.qpn, &qp->faults.responder);
	if (!tern_qp_lock_living(qp))
		return;
	tern_cmd_resume_qp(ib->tdev, qp->core.qpn, requester, responder);
	mutex_unlock(&qp->lock);
}

/*
 * Queries the page faults of a QP, and queues them in the workqueue of the process that registered
 * the region. The region names this process, since an XRC target QP belongs to no process.
 */
void tern_odp_fault_work(struct work_struct *work)
{
	struct tern_qp *qp = container_of(work, struct tern_qp, fault_work);
	struct tern_ib *ib = to_tib(qp->ibqp.device);
	struct tern_odp *odp;
	int err;

	if (!tern_qp_lock_living(qp))
		return;
	err = tern_cmd_query_fault(ib->tdev, qp->core.qpn, &qp->faults);
	mutex_unlock(&qp->lock);
	if (err)
		return;
	/* Regions that both sides of a QP use are of the same process. */
	odp = tern_odp_get(ib, le32_to_cpu(qp->faults.requester.key)) ?:
	      tern_odp_get(ib, le32_to_cpu(qp->faults.responder.key));
	if (!odp) {
		tern_odp_bring_work(&qp->bring_work);	/* finds no region, so it cannot wait */
		return;
	}
	queue_work(odp->wq, &qp->bring_work);
	/* The reference kept the workqueue alive. destroy_workqueue() runs what is queued. */
	tern_odp_put(odp);
}

/* ---- advice of processes ------------------------------------------------------------- */

struct tern_prefetch {
	struct work_struct work;
	bool write;
	bool fault;
	u32 count;
	struct {
		struct tern_odp *odp;
		u64 addr;
		u32 length;
	} parts[];
};

static int tern_prefetch_run(struct tern_prefetch *prefetch)
{
	int err = 0;
	u32 i;

	for (i = 0; !err && i < prefetch->count; i++) {
		err = tern_odp_bring(prefetch->parts[i].odp, prefetch->parts[i].addr,
				     prefetch->parts[i].length, prefetch->write,
				     prefetch->fault);
		if (!err)
			atomic64_inc(&prefetch->parts[i].odp->prefetched);
	}
	return err;
}

static void tern_prefetch_free(struct tern_prefetch *prefetch)
{
	while (prefetch->count)
		tern_odp_put(prefetch->parts[--prefetch->count].odp);
	kvfree(prefetch);
}

/* Advice may fail without notice. */
static void tern_prefetch_work(struct work_struct *work)
{
	struct tern_prefetch *prefetch = container_of(work, struct tern_prefetch, work);

	tern_prefetch_run(prefetch);
	tern_prefetch_free(prefetch);
}

/* The region of @sge, if it belongs to @pd and allows the access. */
static struct tern_odp *tern_prefetch_get(struct ib_pd *pd, const struct ib_sge *sge, bool write)
{
	struct tern_odp *odp = tern_odp_get(to_tib(pd->device), sge->lkey);
	int err = 0;

	if (!odp)
		return ERR_PTR(-ENOENT);
	if (odp->mr->ibmr.pd != pd || (write && !odp->umem->umem.writable))
		err = -EPERM;
	else if (!tern_odp_contains(odp, sge->addr, sge->length))
		err = -EFAULT;
	if (!err)
		return odp;
	tern_odp_put(odp);
	return ERR_PTR(err);
}

static struct tern_prefetch *tern_prefetch_alloc(struct ib_pd *pd, const struct ib_sge *sges,
						 u32 count, bool write)
{
	struct tern_prefetch *prefetch;
	struct tern_odp *odp;
	u32 i;

	prefetch = kvzalloc(struct_size(prefetch, parts, count), GFP_KERNEL_ACCOUNT);
	if (!prefetch)
		return ERR_PTR(-ENOMEM);
	INIT_WORK(&prefetch->work, tern_prefetch_work);
	prefetch->write = write;
	for (i = 0; i < count; i++) {
		if (!sges[i].length)
			continue;
		odp = tern_prefetch_get(pd, &sges[i], write);
		if (IS_ERR(odp)) {
			tern_prefetch_free(prefetch);
			return ERR_CAST(odp);
		}
		prefetch->count++;
		prefetch->parts[prefetch->count - 1].odp = odp;
		prefetch->parts[prefetch->count - 1].addr = sges[i].addr;
		prefetch->parts[prefetch->count - 1].length = sges[i].length;
	}
	return prefetch;
}

static int tern_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
			  struct ib_sge *sges, u32 count, struct uverbs_attr_bundle *attrs)
{
	struct tern_prefetch *prefetch;
	bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	int err;

	if (advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH && !write &&
	    advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	if (flags & ~IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return -EOPNOTSUPP;

	prefetch = tern_prefetch_alloc(pd, sges, count, write);
	if (IS_ERR(prefetch))
		return PTR_ERR(prefetch);
	prefetch->fault = advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	if (!(flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH) && prefetch->count) {
		queue_work(prefetch->parts[0].odp->wq, &prefetch->work);
		return 0;
	}
	err = tern_prefetch_run(prefetch);
	tern_prefetch_free(prefetch);
	return err;
}

/* ---- regions ---------------------------------------------------------------------------- */

/*
 * Returns the workqueue for work that waits for memory of the process that owns @pd, or NULL if
 * memory is short. A process can delay a page fault for ever: it may map a file of a FUSE file
 * system that it serves itself. So each process has a workqueue of its own.
 */
static struct workqueue_struct *tern_odp_queue(struct ib_pd *pd)
{
	struct workqueue_struct *wq, *old;
	struct tern_ucontext *uctx;

	if (!pd->uobject)
		return to_tib(pd->device)->fault_wq;
	uctx = to_tucontext(pd->uobject->context);
	wq = READ_ONCE(uctx->odp_wq);
	if (wq)
		return wq;
	wq = alloc_workqueue("tern-odp", WQ_UNBOUND, TERN_ODP_WORKERS);
	if (!wq)
		return NULL;
	old = cmpxchg(&uctx->odp_wq, NULL, wq);
	if (!old)
		return wq;
	destroy_workqueue(wq);
	return old;
}

static void tern_odp_free(struct tern_dev *tdev, struct tern_odp *odp)
{
	struct ib_umem_odp *child;
	unsigned long index;

	xa_for_each(&odp->children, index, child) {
		ib_umem_odp_release(child);
		cond_resched();
	}
	xa_destroy(&odp->children);
	ib_umem_odp_release(odp->umem);
	tern_sparse_exit(tdev, &odp->sparse);
	mem_cgroup_put(odp->memcg);
	kfree(odp);
}

/*
 * Regions have pages of PAGE_SIZE, even if the process asks for huge pages. Since 6.16, ib_core
 * and hmm_dma_map_pfn() disagree on the index of a huge page, so that hmm_dma_map_pfn() returns
 * the address of another page.
 */
static struct ib_umem_odp *tern_odp_umem(struct ib_device *ibdev, u64 start, u64 length,
					 int access, bool implicit)
{
	access &= ~IB_ACCESS_HUGETLB;
	if (implicit)
		return ib_umem_odp_alloc_implicit(ibdev, access);
	return ib_umem_odp_get(ibdev, start, length, access, &tern_odp_ops);
}

/* @virt_addr in the region is @start in the process. */
static struct tern_odp *tern_odp_alloc(struct ib_pd *ibpd, struct ib_umem_odp *umem, u64 start,
				       u64 length, u64 virt_addr)
{
	struct workqueue_struct *wq = tern_odp_queue(ibpd);
	struct tern_dev *tdev = to_tdev(ibpd->device);
	u64 page = BIT_ULL(umem->page_shift);
	struct tern_odp *odp;
	int err;

	if ((start ^ virt_addr) & (page - 1))
		return ERR_PTR(-EINVAL);
	odp = wq ? kzalloc(sizeof(*odp), GFP_KERNEL) : NULL;
	if (!odp)
		return ERR_PTR(-ENOMEM);
	odp->wq = wq;
	odp->umem = umem;
	odp->start = start;
	odp->base = ALIGN_DOWN(start, page);
	odp->size = length;
	odp->memcg = get_mem_cgroup_from_mm(current->mm);
	mutex_init(&odp->lock);
	init_rwsem(&odp->walk);
	INIT_DELAYED_WORK(&odp->reap, tern_odp_reap_work);
	xa_init(&odp->children);
	refcount_set(&odp->users, 1);
	init_completion(&odp->unused);
	err = tern_sparse_init(tdev, &odp->sparse,
			       DIV_ROUND_UP_ULL(start + length - odp->base, page),
			       umem->page_shift);
	if (err) {
		tern_sparse_exit(tdev, &odp->sparse);
		mem_cgroup_put(odp->memcg);
		kfree(odp);
		return ERR_PTR(err);
	}
	return odp;
}

static int tern_odp_create(struct tern_mr *mr, struct ib_pd *ibpd, struct tern_odp *odp,
			   u64 virt_addr)
{
	struct tern_dev *tdev = to_tdev(ibpd->device);
	struct tern_hw_create_mr hw = {
		.start = cpu_to_le64(virt_addr),
		.length = cpu_to_le64(odp->size),
		.access = tern_hw_access(mr->access),
		.flags = TERN_MR_ON_DEMAND,
	};
	int err;

	tern_sparse_describe(&odp->sparse, &hw.pages);
	err = tern_mr_create(mr, ibpd, &hw);
	if (err)
		return err;
	odp->mr = mr;
	odp->umem->private = odp;
	/* May replace a region that is being released: the card has destroyed that one. */
	err = xa_err(xa_store(&to_tib(ibpd->device)->odps, mr->ibmr.lkey >> 8, odp,
			      GFP_KERNEL));
	if (err)
		tern_cmd_destroy_mr(tdev, mr->ibmr.lkey);
	return err;
}

/* An implicit region, start 0 and length U64_MAX, covers the whole address space. */
struct ib_mr *tern_reg_odp_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr, int access)
{
	struct tern_dev *tdev = to_tdev(ibpd->device);
	bool implicit = !start && length == U64_MAX;
	struct ib_umem_odp *umem;
	struct tern_odp *odp;
	struct tern_mr *mr;
	int err;

	if (implicit && virt_addr)
		return ERR_PTR(-EINVAL);
	if (!implicit && length > tdev->attr.max_mr_size)
		return ERR_PTR(-EINVAL);
	mr = tern_mr_alloc(access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	umem = tern_odp_umem(ibpd->device, start, length, access, implicit);
	if (IS_ERR(umem)) {
		err = PTR_ERR(umem);
		goto err_mr;
	}
	if (implicit)
		length = min_t(u64, TASK_SIZE, TERN_IMPLICIT_MAX);
	odp = tern_odp_alloc(ibpd, umem, start, length, virt_addr);
	if (IS_ERR(odp)) {
		ib_umem_odp_release(umem);
		err = PTR_ERR(odp);
		goto err_mr;
	}
	odp->delta = start - (access & IB_ZERO_BASED ? 0 : virt_addr);
	mr->umem = &umem->umem;
	mr->odp = odp;
	err = tern_odp_create(mr, ibpd, odp, virt_addr);
	if (err)
		goto err_odp;
	return &mr->ibmr;

err_odp:
	tern_odp_free(tdev, odp);
err_mr:
	kfree(mr);
	return ERR_PTR(err);
}

/* The card has destroyed the region. Waits for code that still maps pages of it. */
void tern_odp_release(struct tern_mr *mr)
{
	struct tern_ib *ib = to_tib(mr->ibmr.device);
	struct tern_odp *odp = mr->odp;

	xa_cmpxchg(&ib->odps, mr->ibmr.lkey >> 8, odp, NULL, 0);
	if (cancel_delayed_work_sync(&odp->reap))
		tern_odp_put(odp);
	tern_odp_put(odp);
	wait_for_completion(&odp->unused);
	tern_odp_free(ib->tdev, odp);
}

/* Returns the number of page list tables of a region on demand. */
unsigned long tern_odp_tables(const struct tern_odp *odp)
{
	return atomic_long_read(&odp->sparse.count);
}

static int tern_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct tern_odp *odp = to_tmr(ibmr)->odp;
	struct nlattr *table;

	if (!odp)
		return 0;
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_stat_hwcounter_entry(msg, "page_faults", atomic64_read(&odp->faults)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_invalidations",
					 atomic64_read(&odp->invalidations)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_prefetch", atomic64_read(&odp->prefetched))) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

const struct ib_device_ops tern_odp_dev_ops = {
	.advise_mr = tern_advise_mr,
	.fill_stat_mr_entry = tern_fill_stat_mr_entry,
};
