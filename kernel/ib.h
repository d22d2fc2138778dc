/* SPDX-License-Identifier: GPL-2.0 */
/* The RDMA half: the objects of the verbs, and the functions that ib_core calls. */
#ifndef TERN_IB_H
#define TERN_IB_H

#include <linux/idr.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "cmd.h"
#include "kverbs.h"
#include "tern.h"

struct tern_alloc_ucontext_resp;
struct tern_odp;

#define TERN_PORT	1

/* Pages of device memory. */
struct tern_dm_pool {
	struct mutex lock;	/* protects used */
	unsigned long *used;	/* bitmap of pages */
	u32 pages;
};

struct tern_ib {
	struct ib_device ibdev;
	struct tern_dev *tdev;
	bool port_up;		/* as last reported; tern_dev.ib_lock protects it */
	struct ida db_ida;	/* allocates doorbell pages to processes */
	struct tern_dm_pool dm;
	atomic_t mr_variant;	/* low byte of the next key, so that stale keys are refused */
	struct xarray odps;	/* on-demand regions, by index of the key */
	struct xarray qp_counters;	/* struct tern_qp_counter, by id of the rdma_counter */
	u32 next_qp_counter;	/* for xa_alloc_cyclic(), which its lock protects */
	/* Its work queries page faults, and maps pages of on-demand regions of kernel users. */
	struct workqueue_struct *fault_wq;
};

struct tern_ucontext {
	struct ib_ucontext ibucontext;
	struct rdma_user_mmap_entry *db_entry;
	struct tern_engine *engine;	/* has all objects of the process */
	u32 bar_page;		/* index of the doorbell page in BAR 2 */
	u32 db_page;		/* the number of that page in its engine */
	struct workqueue_struct *odp_wq;	/* tern_odp_queue(); NULL before its first use */
};

struct tern_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct tern_ah {
	struct ib_ah ibah;
	struct tern_hw_ud_seg av;	/* each send adds dest_qpn and qkey */
};

struct tern_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem;	/* regions of processes: the pinned memory */
	int access;		/* regions of processes: enum ib_access_flags */
	struct tern_table table;
	struct tern_odp *odp;	/* on-demand regions, which do not use table */
	u64 mapped;		/* fast registration: leaves that map_mr_sg() has set */
};

/* Memory of a queue that a process may map. It lives as long as its mmap entry. */
struct tern_ubuf {
	struct rdma_user_mmap_entry *entry;
	struct tern_buf *buf;
	u64 key;		/* what the process passes to mmap() */
};

/* A CQ of a process or, if ibcq has no uobject, of a user in the kernel. */
struct tern_cq {
	struct ib_cq ibcq;
	struct tern_cq_core core;
	union {
		struct {
			struct tern_ubuf ubuf;
			struct mutex lock;	/* protects ubuf and cqe; held over RESIZE_CQ */
		};
		struct tern_kverbs_cq k;
	};
};

struct tern_qp {
	struct ib_qp ibqp;
	struct tern_qp_core core;
	bool kernel;		/* of a user in the kernel; uses k, not ubuf */
	union {
		struct tern_ubuf ubuf;
		struct tern_kverbs_qp k;
	};
	struct ib_qp_cap cap;
	enum ib_sig_type sig_type;
	u32 create_flags;	/* enum ib_qp_create_flags */
	struct work_struct fault_work;	/* tern_odp_fault_work() */
	struct work_struct bring_work;	/* tern_odp_bring_work() */
	struct tern_hw_faults faults;	/* what fault_work has asked for, and bring_work brings */
	struct mutex lock;	/* protects the rest; held over commands that name a living QP */
	bool destroyed;		/* the card may have given the number to another QP */
	enum ib_qp_state state;
	u32 dest_qpn;
	u8 static_rate;		/* enum ib_rate; query_qp() returns it, and it limits nothing */
};

struct tern_srq {
	struct ib_srq ibsrq;
	struct tern_srq_core core;
	bool kernel;		/* of a user in the kernel; uses k, not ubuf */
	u32 max_sge;
	struct mutex lock;	/* protects layout and ubuf; held over RESIZE_SRQ */
	struct tern_srq_layout layout;
	union {
		struct tern_ubuf ubuf;
		struct tern_kverbs_srq k;
	};
};

struct tern_xrcd {
	struct ib_xrcd ibxrcd;
	u32 xrcdn;
};

struct tern_mw {
	struct ib_mw ibmw;
};

struct tern_dm {
	struct ib_dm ibdm;
	struct rdma_user_mmap_entry *entry;
	u64 offset;		/* of the first byte in device memory */
};

struct tern_wq {
	struct ib_wq ibwq;
	struct tern_wq_core core;
	struct tern_ubuf ubuf;
	struct mutex lock;	/* protects ibwq.state; held over MODIFY_WQ */
};

struct tern_wq_table {
	struct ib_rwq_ind_table ibtable;
};

struct tern_flow {
	struct ib_flow ibflow;
	u32 id;
};

struct tern_counters {
	struct ib_counters ibcounters;
	u32 id;
};

#ifdef TERN_HAVE_COMP_CNTR
struct tern_comp_cntr {
	struct ib_comp_cntr ibcc;
	struct tern_ubuf ubuf;
	const struct tern_hw_comp_record *record;	/* in ubuf */
	u32 id;
};
#endif

static inline struct tern_ib *to_tib(struct ib_device *ibdev)
{
	return container_of(ibdev, struct tern_ib, ibdev);
}

static inline struct tern_dev *to_tdev(struct ib_device *ibdev)
{
	return to_tib(ibdev)->tdev;
}

static inline struct tern_ucontext *to_tucontext(struct ib_ucontext *ibucontext)
{
	return container_of(ibucontext, struct tern_ucontext, ibucontext);
}

static inline struct tern_pd *to_tpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct tern_pd, ibpd);
}

static inline struct tern_ah *to_tah(struct ib_ah *ibah)
{
	return container_of(ibah, struct tern_ah, ibah);
}

static inline struct tern_mr *to_tmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct tern_mr, ibmr);
}

static inline struct tern_cq *to_tcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct tern_cq, ibcq);
}

static inline struct tern_qp *to_tqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct tern_qp, ibqp);
}

static inline struct tern_srq *to_tsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct tern_srq, ibsrq);
}

static inline struct tern_xrcd *to_txrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct tern_xrcd, ibxrcd);
}

static inline struct tern_dm *to_tdm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct tern_dm, ibdm);
}

static inline struct tern_wq *to_twq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct tern_wq, ibwq);
}

static inline struct tern_flow *to_tflow(struct ib_flow *ibflow)
{
	return container_of(ibflow, struct tern_flow, ibflow);
}

static inline struct tern_counters *to_tcounters(struct ib_counters *ibcounters)
{
	return container_of(ibcounters, struct tern_counters, ibcounters);
}

#ifdef TERN_HAVE_COMP_CNTR
static inline struct tern_comp_cntr *to_tcomp_cntr(struct ib_comp_cntr *ibcc)
{
	return container_of(ibcc, struct tern_comp_cntr, ibcc);
}
#endif

/* For requests without driver data: non-zero data comes from a newer provider. */
static inline int tern_udata_no_input(struct ib_udata *udata)
{
	if (udata && udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EINVAL;
	return 0;
}

/* Reads a mandatory request of the provider. Refuses non-zero bytes after it. */
static inline int tern_udata_read(struct ib_udata *udata, void *cmd, size_t size)
{
	if (udata->inlen < size || !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EINVAL;
	return ib_copy_from_udata(cmd, udata, size);
}

/* Writes as much of the response as the provider has room for. */
static inline int tern_udata_respond(struct ib_udata *udata, const void *resp, size_t size)
{
	return ib_copy_to_udata(udata, (void *)resp, min(size, udata->outlen));
}

/* ib.c */
int tern_ib_register(struct tern_dev *tdev);
void tern_ib_unregister(struct tern_dev *tdev);
void tern_ib_update_port(struct tern_dev *tdev);
enum ib_mtu tern_active_mtu(const struct tern_dev *tdev);
void tern_ib_device_fatal(struct tern_dev *tdev);

/* ucontext.c */
int tern_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata);
void tern_dealloc_ucontext(struct ib_ucontext *ibucontext);
struct tern_engine *tern_engine_of_user(struct ib_device *ibdev, struct ib_udata *udata);
u32 tern_db_page_of_user(struct ib_udata *udata);
void tern_ucontext_describe(struct tern_ucontext *uctx, struct tern_alloc_ucontext_resp *resp);
int tern_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma);
void tern_mmap_free(struct rdma_user_mmap_entry *rdma_entry);
int tern_ubuf_create(struct tern_ucontext *uctx, struct tern_ubuf *ubuf, size_t size);
void tern_ubuf_destroy(struct tern_ubuf *ubuf);
int tern_dm_entry_create(struct tern_ucontext *uctx, u32 page, u32 count,
			 struct rdma_user_mmap_entry **entry);
#ifdef TERN_HAVE_DMABUF_EXPORT
struct rdma_user_mmap_entry *tern_pgoff_to_mmap_entry(struct ib_ucontext *ibucontext, off_t pgoff);
int tern_mmap_get_pfns(struct rdma_user_mmap_entry *rdma, struct phys_vec *phys_vec,
		       struct p2pdma_provider **provider);
#endif

/* uapi.c */
extern const struct uapi_definition tern_uapi_defs[];
int tern_query_ucontext(struct ib_ucontext *ibucontext, struct uverbs_attr_bundle *attrs);

/* pd.c */
int tern_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int tern_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* mr.c */
#ifdef TERN_HAVE_DMAH
struct ib_mr *tern_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			       int access, struct ib_dmah *dmah, struct ib_udata *udata);
struct ib_mr *tern_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				      int fd, int access, struct ib_dmah *dmah,
				      struct uverbs_attr_bundle *attrs);
#else
struct ib_mr *tern_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			       int access, struct ib_udata *udata);
#ifdef TERN_HAVE_REG_DMABUF_ATTRS
struct ib_mr *tern_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				      int fd, int access, struct uverbs_attr_bundle *attrs);
#else
struct ib_mr *tern_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt_addr,
				      int fd, int access, struct ib_udata *udata);
#endif
#endif
struct tern_mr *tern_mr_alloc(int access);
int tern_mr_create(struct tern_mr *mr, struct ib_pd *ibpd, struct tern_hw_create_mr *hw);
struct ib_mr *tern_create_plain_mr(struct ib_pd *ibpd, struct tern_hw_create_mr *hw);
int tern_mr_pin(struct ib_device *ibdev, struct tern_mr *mr, u64 start, u64 length, u64 virt_addr);
void tern_mr_unpin(struct tern_dev *tdev, struct tern_mr *mr);
int tern_check_access(const struct tern_dev *tdev, int access);
u8 tern_hw_access(int access);
int tern_access_from_hw(u8 hw);
int tern_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* dm.c */
int tern_dm_init(struct tern_ib *ib);
void tern_dm_exit(struct tern_ib *ib);
phys_addr_t tern_dm_address(const struct tern_dev *tdev, u32 page);
void tern_dm_release(struct tern_ib *ib, u32 page, u32 count);

/* odp.c */
struct ib_mr *tern_reg_odp_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt_addr,
			      int access);
void tern_odp_release(struct tern_mr *mr);
unsigned long tern_odp_tables(const struct tern_odp *odp);
void tern_odp_fault_work(struct work_struct *work);
void tern_odp_bring_work(struct work_struct *work);

/* cq.c */
extern const struct ib_device_ops tern_cq_ops;
extern const struct ib_device_ops tern_modify_cq_ops;

/* restrack.c */
extern const struct ib_device_ops tern_restrack_ops;

/* pma.c */
extern const struct ib_device_ops tern_pma_ops;

/* Optional, by capability. Without them ib_core returns EOPNOTSUPP. */
extern const struct ib_device_ops tern_ah_ops;		/* ah.c */
extern const struct ib_device_ops tern_srq_ops;		/* srq.c */
extern const struct ib_device_ops tern_xrcd_ops;	/* xrcd.c */
extern const struct ib_device_ops tern_mcast_ops;	/* mcast.c */
extern const struct ib_device_ops tern_flow_ops;	/* flow.c */
extern const struct ib_device_ops tern_counters_ops;	/* flow_counters.c */
extern const struct ib_device_ops tern_qp_counter_ops;	/* qp_counters.c */
extern const struct ib_device_ops tern_comp_cntr_ops;	/* comp_counters.c */
extern const struct ib_device_ops tern_mw_ops;		/* mw.c */
extern const struct ib_device_ops tern_rereg_ops;	/* rereg.c */
extern const struct ib_device_ops tern_odp_dev_ops;	/* odp.c */
extern const struct ib_device_ops tern_dm_ops;		/* dm.c */
extern const struct ib_device_ops tern_wq_ops;		/* wq.c */
extern const struct ib_device_ops tern_rss_ops;		/* rss.c */

/* rss.c */
int tern_rss_qp_create(struct tern_qp *qp, const struct ib_qp_init_attr *init,
		       struct ib_udata *udata);

/* qp.c */
void tern_ib_qp_event(struct tern_qp_core *core, u8 type);
void tern_ib_qp_died(struct tern_qp_core *core);
bool tern_qp_lock_living(struct tern_qp *qp);
void tern_qp_destroy_core(struct tern_qp *qp);
int tern_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int tern_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* qp_attr.c */
int tern_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int tern_query_qp_hw(struct tern_qp *qp, struct tern_hw_qp_attr *hw);
int tern_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init);

/* gid.c */
int tern_add_gid(const struct ib_gid_attr *attr, void **context);
int tern_del_gid(const struct ib_gid_attr *attr, void **context);

/* port_stats.c */
struct rdma_hw_stats *tern_port_stats_alloc(void);
void tern_port_stats_fill(struct rdma_hw_stats *stats, const u64 *values);
struct rdma_hw_stats *tern_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int tern_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index);

#endif
