/* SPDX-License-Identifier: GPL-2.0 */
/* The device, as all layers of the driver share it. */
#ifndef TERN_H
#define TERN_H

#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "aq.h"
#include "cmd.h"
#include "eq.h"

#define TERN_DRV_NAME	"tern"

struct net_device;
struct tern_ib;

/* Pages of device memory. */
struct tern_dm_pool {
	struct mutex lock;	/* of used */
	unsigned long *used;	/* a bit for each */
	u32 pages;
};

/* One of the card's engines, which has the objects whose numbers name it. */
struct tern_engine {
	struct tern_dev *tdev;
	void __iomem *regs;	/* its part of BAR 0 */
	void __iomem *db;	/* its page 0, of BAR 2 */
	struct tern_aq aq;
	struct tern_eq *eqs;	/* one for each vector */
};

/* bits of tern_dev.state */
enum {
	TERN_STATE_DEAD,	/* the card does no DMA and takes no commands any more */
};

struct tern_dev {
	struct pci_dev *pdev;
	bool up;		/* between tern_up() and tern_down() */

	unsigned long state;
	struct mutex stop_lock;	/* only one stops the card, the others wait for it */
	struct delayed_work health;
	struct work_struct flush;	/* tells users of a dead card to poll */

	u32 caps;		/* TERN_CAP_* */
	u32 db_pages;		/* of all engines */
	u8 mac[6];
	struct tern_device_attr attr;

	/* [0] tells what all of them share, and has all objects that are not of processes. */
	struct tern_engine engines[TERN_MAX_ENGINES];
	u32 num_engines;
	struct tern_vectors vectors;
	u32 kernel_pdn;

	/*
	 * Who gets the events of which queue. Interrupt handlers look up without a lock;
	 * whoever removes an entry waits for running handlers before it frees it.
	 */
	struct xarray cqs;
	struct xarray qps;
	struct xarray srqs;
	struct xarray wqs;

	struct xarray odps;	/* regions on demand, by index of the key */
	struct workqueue_struct *odp_wq;

	struct mutex stats_lock;	/* of the page that counters are read through */
	__le64 *stats;
	dma_addr_t stats_dma;

	struct devlink *devlink;
	struct net_device *netdev;	/* NULL while not registered */

	spinlock_t ib_lock;	/* of ib, for those who report events */
	struct tern_ib *ib;	/* NULL while not registered */

	struct ida db_ida;	/* doorbell pages of processes */
	struct tern_dm_pool dm;
	atomic_t mr_variant;	/* varies the keys of regions, so that stale ones are caught */
};

static inline bool tern_is_dead(const struct tern_dev *tdev)
{
	return test_bit(TERN_STATE_DEAD, &tdev->state);
}

/* The engine of object @num. A number that names none is for the first to refuse. */
static inline struct tern_engine *tern_engine_of(struct tern_dev *tdev, u32 num)
{
	u32 index = num >> TERN_ENGINE_SHIFT;

	return &tdev->engines[index < tdev->num_engines ? index : 0];
}

/* The same of a region or window. */
static inline struct tern_engine *tern_engine_of_key(struct tern_dev *tdev, u32 key)
{
	return tern_engine_of(tdev, key >> 8);
}

/* health.c */
void tern_dev_stop(struct tern_dev *tdev);
void tern_dev_fail(struct tern_dev *tdev, const char *why);
void tern_dev_flush(struct tern_dev *tdev);
void tern_health_init(struct tern_dev *tdev);
void tern_health_start(struct tern_dev *tdev);
void tern_health_stop(struct tern_dev *tdev);
void tern_health_exit(struct tern_dev *tdev);

/* devlink.c */
int tern_devlink_init(struct tern_dev *tdev);
void tern_devlink_exit(struct tern_dev *tdev);

/* odp.c */
int tern_odp_init(struct tern_dev *tdev);
void tern_odp_exit(struct tern_dev *tdev);

/* stats.c */
int tern_stats_init(struct tern_dev *tdev);
void tern_stats_exit(struct tern_dev *tdev);
int tern_stats_read(struct tern_dev *tdev, u64 *values);

#endif
