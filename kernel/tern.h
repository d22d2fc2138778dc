/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device, as all layers of the driver share it.
 *
 * A layer calls those below it, and reports to those above it through struct tern_upcalls or
 * through the handlers of an object. scripts/layers.toml lists the layers and their files.
 *
 * Lock order, outermost first:
 *
 *  1. tern_devlink.lock, then devlink's own, which is held while the card goes down or comes up,
 *     then the RTNL
 *  2. tern_cq.lock, tern_qp.lock, tern_srq.lock, tern_wq.lock: no two of them together
 *  3. tern_odp.walk, tern_odp.lock, then umem_mutex of a umem on demand
 *  4. tern_dev.stats_lock
 *  5. tern_aq.slots, which each admin command holds from its submission to its completion
 *  6. tern_dev.stop_lock
 *  7. spinlocks: xa_lock of tern_dev.cqs or of tern_dev.qps, tern_kverbs_cq.lock, tern_sq.lock,
 *     tern_rq.lock; tern_kverbs_srq.lock also nests in tern_kverbs_cq.lock
 *
 * tern_dm_pool.lock, tern_dev.ib_lock, tern_aq.lock, tern_netdev.link_lock and xa_lock of the
 * other tables are innermost: their holders take no other lock of the driver.
 *
 * Memory reclaim may wait for umem_mutex. So no holder of it or of a lock after it allocates
 * memory in a way that may enter reclaim.
 */
#ifndef TERN_H
#define TERN_H

#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_user_verbs.h>

#include "tern/tern_hw.h"

#define TERN_DRV_NAME	"tern"

struct dentry;
struct devlink;
struct net_device;
struct tern_aq;
struct tern_cc_param;
struct tern_dev;
struct tern_eq;
struct tern_ib;
struct tern_vector;

/* QUERY_DEVICE's answer, in the CPU's byte order. */
struct tern_device_attr {
	u32 fw_version;
	u32 max_qp;
	u32 max_cq;
	u32 max_mr;
	u32 max_pd;
	u32 max_gids;
	u64 max_mr_size;
	u64 page_size_cap;
	u8 max_sq_log_size;
	u8 max_rq_log_size;
	u8 max_cq_log_size;
	u8 max_rd_atomic;
	u8 local_ca_ack_delay;
	u16 max_mtu;
	u16 max_send_sge;
	u16 max_recv_sge;
	u16 max_inline;
	u32 max_srq;
	u32 max_xrcd;
	u32 max_mcast_groups;
	u32 max_mcast_qps;
	u32 max_comp_counters;
	u32 max_flows;
	u8 max_srq_log_size;
	u8 max_log_tags;
	u8 max_log_tag_ops;
	u32 max_wq;
	u32 max_wq_tables;
};

/* An engine of the card. The number of an object says which engine has it. */
struct tern_engine {
	struct tern_dev *tdev;
	void __iomem *regs;	/* its registers in BAR 0 */
	void __iomem *db;	/* its doorbell page 0 in BAR 2 */
	struct tern_aq *aq;	/* allocated once, valid until the device is removed */
	struct tern_eq *eqs;	/* one for each vector */
	u32 failed_status;	/* STATUS when the card failed */
};

/* The size of a table by enum tern_hw_event. */
#define TERN_EVENT_TYPES	(TERN_EVENT_WQ_FATAL + 1)

/* What a layer reports to layers above it. main.c, the top layer, sets the functions. */
struct tern_upcalls {
	/* The card reports an event of object @id. From interrupt handlers. */
	void (*event[TERN_EVENT_TYPES])(struct tern_dev *tdev, u32 id, u8 type);
	/* The card has failed and was stopped. From process context, without stop_lock. */
	void (*died)(struct tern_dev *tdev);
	/*
	 * A queue of the net_device has failed, and the driver has tried to restart it. @works:
	 * the restart succeeded. From process context, without the RTNL.
	 */
	void (*queue_failed)(struct tern_dev *tdev, u32 index, bool works);
	/*
	 * All queues work again, after the restart of one had failed. From process context,
	 * without the RTNL.
	 */
	void (*queues_work)(struct tern_dev *tdev);
	/* The port may have gone up or down. From any context. */
	void (*port_changed)(struct tern_dev *tdev);
};

/* bits of tern_dev.state */
enum {
	TERN_STATE_DEAD,	/* not started, or stopped: no DMA, no commands */
};

/* Bits of tern_dev.held. The card starts when tern_release() has cleared the last one. */
enum {
	TERN_HELD_SUSPEND	= BIT(0),
	TERN_HELD_RESET		= BIT(1),	/* of the function */
	TERN_HELD_ERROR		= BIT(2),	/* of PCI Express, until Linux has handled it */
	TERN_HELD_RELOAD	= BIT(3),
	TERN_HELD_FOREVER	= BIT(4),	/* the driver or the system goes */
};

struct tern_dev {
	struct pci_dev *pdev;
	const struct tern_upcalls *upcalls;
	/* The lock of the devlink protects the next two. */
	bool up;		/* between tern_up() and tern_down() */
	u8 held;		/* TERN_HELD_*: why the card has to stay down */

	unsigned long state;
	struct mutex stop_lock;	/* serializes stopping the card and changes of CTRL */
	const char *failure;	/* why the card failed; NULL if it has not */
	struct delayed_work health;
	const char *accusation;	/* what the health check will fail the card for, or NULL */
	struct work_struct recheck;	/* runs tern_cq_core.recheck of all CQs */

	u32 caps;		/* TERN_CAP_* */
	u32 db_pages;		/* total of all engines */
	u8 mac[6];
	struct tern_device_attr attr;

	/* [0] has the registers that all engines share, and all objects that no process owns. */
	struct tern_engine engines[TERN_MAX_ENGINES];
	u32 num_engines;
	struct tern_vector *vectors;	/* [0]: asynchronous events and admin completions */
	unsigned int num_vectors;
	u32 kernel_pdn;

	/*
	 * Queues by number, to find who gets an event. Interrupt handlers look up without a
	 * lock. Code that removes an entry waits for running handlers before it frees the entry.
	 */
	struct xarray cqs;
	struct xarray qps;
	struct xarray srqs;
	struct xarray wqs;

	struct mutex stats_lock;	/* protects the page that counters are read through */
	__le64 *stats;
	dma_addr_t stats_dma;

	struct devlink *devlink;
	struct dentry *debugfs;	/* the folder of this device */
	struct tern_cc_param *cc_params;	/* debugfs.c */
	struct net_device *netdev;	/* NULL while not registered; absent while not up */

	spinlock_t ib_lock;	/* protects ib and tern_ib.port_up */
	struct tern_ib *ib;	/* NULL while not registered */
	char ib_name[IB_DEVICE_NAME_MAX];	/* of the last one; empty before the first */
};

static inline bool tern_is_dead(const struct tern_dev *tdev)
{
	return test_bit(TERN_STATE_DEAD, &tdev->state);
}

/* Has the health check stop the card, with @why, a constant, as the reason. From any context. */
static inline void tern_dev_accuse(struct tern_dev *tdev, const char *why)
{
	WRITE_ONCE(tdev->accusation, why);
}

/* The engine of object @num. If no engine has it, the first engine, which refuses the number. */
static inline struct tern_engine *tern_engine_of(struct tern_dev *tdev, u32 num)
{
	u32 index = num >> TERN_ENGINE_SHIFT;

	return &tdev->engines[index < tdev->num_engines ? index : 0];
}

/* The engine of the region or window with @key. */
static inline struct tern_engine *tern_engine_of_key(struct tern_dev *tdev, u32 key)
{
	return tern_engine_of(tdev, key >> 8);
}

#endif
