/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between the kernels that this driver builds for; Kbuild detects them. */
#ifndef TERN_COMPAT_H
#define TERN_COMPAT_H

/* 6.6 moved the functions of the page pool to a header of their own. */
#ifdef TERN_HAVE_PAGE_POOL_HELPERS
#include <net/page_pool/helpers.h>
#else
#include <net/page_pool.h>
#endif

/* Late stable releases moved the iterator over the blocks of a umem, too. */
#ifdef TERN_HAVE_RDMA_ITER
#include <rdma/iter.h>
#endif

/*
 * Since 6.2. Older uverbs passes unknown device_cap_flags on to processes, so the bit of ATOMIC
 * WRITE works there. Older ib_core refuses FLUSH as an access right of a region.
 */
#ifndef TERN_HAVE_MEM_PLACEMENT
#define IB_DEVICE_ATOMIC_WRITE	BIT_ULL(40)
#define IB_DEVICE_FLUSH_GLOBAL	0
#define IB_ACCESS_FLUSH_GLOBAL	0
#define IB_ACCESS_FLUSH_PERSISTENT	0
#endif

/* Older kernels cannot tell that regions on demand take FLUSH and ATOMIC WRITE. */
#ifndef TERN_HAVE_ODP_PLACEMENT
#define IB_ODP_SUPPORT_FLUSH	0
#define IB_ODP_SUPPORT_ATOMIC_WRITE	0
#endif

/* Since 6.3 devlink fills in the driver's name itself. */
#ifdef TERN_HAVE_DEVLINK_DRIVER_NAME
#define tern_devlink_driver_name(req, name)	0
#else
#define tern_devlink_driver_name(req, name)	devlink_info_driver_name_put(req, name)
#endif

/* From 5.16 to 6.2 a driver told devlink that it can reload. */
#ifdef TERN_HAVE_DEVLINK_FEATURES
#define tern_devlink_can_reload(devlink)	devlink_set_features(devlink, DEVLINK_F_RELOAD)
#else
#define tern_devlink_can_reload(devlink)	do { } while (0)
#endif

/* Since 6.10 a tracepoint names the source of a string once. */
#ifdef TERN_HAVE_ASSIGN_STR
#define tern_assign_str(dst, src)	__assign_str(dst)
#else
#define tern_assign_str(dst, src)	__assign_str(dst, src)
#endif

/*
 * Since 6.16 ib_core leaves it to the driver to map the pages of an ODP umem for DMA, and tells
 * their rights as HMM does. The caller holds umem_mutex. Page @index has an address and rights if
 * it is present; the rights to ask ib_core for are TERN_ODP_READ and TERN_ODP_WRITE.
 */
#ifdef TERN_HAVE_HMM_DMA
#include <linux/hmm.h>
#include <linux/pci-p2pdma.h>
#include <rdma/ib_umem_odp.h>

/*
 * hmm_range_fault() rewrites the entries of the list without the lock of the umem, and a second
 * walk could lose HMM_PFN_DMA_MAPPED that the first has set.
 */
#define TERN_ODP_WALKS_AT_ONCE	false
#define TERN_ODP_READ	0
#define TERN_ODP_WRITE	HMM_PFN_WRITE

static inline bool tern_odp_present(const struct ib_umem_odp *umem, size_t index)
{
	return umem->map.pfn_list[index] & HMM_PFN_VALID;
}

static inline bool tern_odp_writable(const struct ib_umem_odp *umem, size_t index)
{
	return umem->umem.writable && umem->map.pfn_list[index] & HMM_PFN_WRITE;
}

/* ib_core keeps the write permission of a mapped page. */
static inline void tern_odp_keep_writable(struct ib_umem_odp *umem, size_t index)
{
}

static inline int tern_odp_dma(struct ib_umem_odp *umem, size_t index, dma_addr_t *dma)
{
	bool mapped = umem->map.pfn_list[index] & HMM_PFN_DMA_MAPPED;
	struct device *dev = umem->umem.ibdev->dma_device;
	struct pci_p2pdma_map_state state = {};

	*dma = hmm_dma_map_pfn(dev, &umem->map, index, &state);
	if (dma_mapping_error(dev, *dma))
		return -EFAULT;
	umem->npages += !mapped;
	return 0;
}
#else
#include <rdma/ib_umem_odp.h>

#define TERN_ODP_WALKS_AT_ONCE	true
#define TERN_ODP_READ	ODP_READ_ALLOWED_BIT
#define TERN_ODP_WRITE	ODP_WRITE_ALLOWED_BIT

static inline bool tern_odp_present(const struct ib_umem_odp *umem, size_t index)
{
	return umem->dma_list[index] & ODP_READ_ALLOWED_BIT;
}

static inline bool tern_odp_writable(const struct ib_umem_odp *umem, size_t index)
{
	return umem->dma_list[index] & ODP_WRITE_ALLOWED_BIT;
}

static inline void tern_odp_keep_writable(struct ib_umem_odp *umem, size_t index)
{
	umem->dma_list[index] |= ODP_WRITE_ALLOWED_BIT;
}

static inline int tern_odp_dma(struct ib_umem_odp *umem, size_t index, dma_addr_t *dma)
{
	*dma = umem->dma_list[index] & ODP_DMA_ADDR_MASK;
	return 0;
}
#endif

/* Since 6.18 the operations of a health reporter name its grace period, in ms. */
#ifdef TERN_HAVE_GRACEFUL_PERIOD
#define TERN_GRACEFUL_PERIOD(ms)	.default_graceful_period = (ms),
#define tern_reporter_create(devlink, ops, ms, priv) \
	devlink_health_reporter_create(devlink, ops, priv)
#else
#define TERN_GRACEFUL_PERIOD(ms)
#define tern_reporter_create	devlink_health_reporter_create
#endif

/* In 7.2 only CQs of processes are resized, and the number of CQEs is unsigned. */
#ifdef TERN_HAVE_RESIZE_USER_CQ
#define tern_cqe_count	unsigned int
#else
#define tern_cqe_count	int
#define resize_user_cq	resize_cq
#endif

/*
 * In newer kernels and late stable releases ib_free_cq() has the driver end the events of a CQ
 * before it cancels the work that polls the CQ. Older kernels cancel it first, and an event may
 * queue it once more. A CQ that was made without ib_alloc_cq() has no such work.
 */
#ifdef TERN_HAVE_PRE_DESTROY_CQ
#define tern_cancel_cq_work(cq)	do { } while (0)
#else
#include <rdma/ib_verbs.h>

static inline void tern_cancel_cq_work(struct ib_cq *cq)
{
	if (cq->poll_ctx == IB_POLL_WORKQUEUE || cq->poll_ctx == IB_POLL_UNBOUND_WORKQUEUE)
		cancel_work_sync(&cq->work);
}
#endif

/* In 7.2 a umem can come from other sources than an address of the process. */
#ifndef TERN_HAVE_UMEM_GET_VA
#define ib_umem_get_va	ib_umem_get
#endif

/*
 * TERN_HAVE_FILL_RES_SRQ: since 6.7 drivers add their details to a listed SRQ.
 * TERN_HAVE_RXFH_PARAM: since 6.8 ethtool passes the parameters of an RSS context in a struct.
 * TERN_HAVE_CREATE_CQ_ATTRS: since 6.11 create_cq() gets the attribute bundle, not only udata.
 * TERN_HAVE_REG_DMABUF_ATTRS: since 6.12 so does reg_user_mr_dmabuf().
 * TERN_HAVE_REPORT_PORT_EVENT: since 6.14 ib_core reports a port's events, unless a driver does.
 * TERN_HAVE_RXFH_FIELDS: since 6.17 a function of its own tells ethtool the fields of the hash.
 * TERN_HAVE_COUNTER_PORT: since 6.15 counter_bind_qp() and counter_unbind_qp() get the port.
 * TERN_HAVE_DMAH: since 6.17 a region may be registered with a DMA handle (TLP processing hints).
 * TERN_HAVE_PORT_SPEED: in 7.2 a process can ask for the port's speed as a number.
 * TERN_HAVE_COMP_CNTR: in 7.3 a process can have completion counters.
 * TERN_HAVE_DMABUF_EXPORT: in 7.2 ib_core exports memory that a process may map as a dma-buf.
 */

#endif
