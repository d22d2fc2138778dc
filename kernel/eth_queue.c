// SPDX-License-Identifier: GPL-2.0
/*
 * The queue pairs of the Ethernet function: open, close and settings. Frames are sends (eth_tx.c)
 * and receives (eth_rx.c) of QPs of type ETH. The two CQs of a QP share one NAPI context.
 */
#include <linux/dma-mapping.h>
#include <linux/irq.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "eq.h"
#include "netdev.h"
#include "trace.h"

/* The card hashes all fields that it knows. */
#define TERN_RSS_FIELDS		GENMASK(7, 0)	/* TERN_HASH_* */

static int tern_eth_poll(struct napi_struct *napi, int budget)
{
	struct tern_eth_queue *q = container_of(napi, struct tern_eth_queue, napi);
	int done;

	tern_tx_clean(q, budget);
	done = tern_rx_clean(q, budget);
	if (done < budget && napi_complete_done(napi, done)) {
		tern_ring_cq_arm(q->nd->tdev, &q->tx.cq, false);
		tern_ring_cq_arm(q->nd->tdev, &q->rx.cq, false);
	}
	return done;
}

/* ---- a queue pair ----------------------------------------------------------------- */

static void tern_eth_qp_event(struct tern_qp_core *core, u8 type)
{
	if (type == TERN_EVENT_QP_FATAL)
		tern_eth_fail(container_of(core, struct tern_eth_queue, qp_core));
}

/* An ETH QP has no peer, so its transitions need no attributes. */
static int tern_eth_start_qp(struct tern_eth_queue *q)
{
	static const u8 states[] = { TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS };
	int i, err = 0;

	for (i = 0; !err && i < ARRAY_SIZE(states); i++) {
		struct tern_hw_qp_attr attr = { .state = states[i] };

		err = tern_cmd_modify_qp(q->nd->tdev, q->qp_core.qpn, TERN_QP_STATE, &attr);
	}
	return err;
}

static int tern_eth_create_qp(struct tern_eth_queue *q)
{
	struct tern_dev *tdev = q->nd->tdev;
	struct tern_hw_create_qp hw = {
		.type = TERN_QPT_ETH,
		.pdn = cpu_to_le32(tdev->kernel_pdn),
		.send_cqn = cpu_to_le32(q->tx.cq_core.cqn),
		.recv_cqn = cpu_to_le32(q->rx.cq_core.cqn),
		.db_page = cpu_to_le32(TERN_DB_PAGE_KERNEL),
	};
	struct tern_qp_layout layout;

	tern_qp_plan(&layout, ilog2(q->tx.mask + 1), ilog2(q->rx.mask + 1),
		     order_base_2(q->rx.npages * TERN_SEG_SIZE));
	q->qp_core.event = tern_eth_qp_event;
	return tern_qp_core_create_ring(tdev, &q->qp_core, &q->qp, &layout, &hw);
}

static void tern_eth_destroy_qp(struct tern_eth_queue *q)
{
	struct tern_dev *tdev = q->nd->tdev;

	tern_qp_core_destroy(tdev, &q->qp_core);
	tern_tx_drain(q);
	tern_rx_drain(q);
	tern_ring_qp_exit(tdev, &q->qp);
}

/* The lock waits for a sender: tern_eth_xmit() drops the frames of a closed queue. */
static void tern_eth_set_open(struct tern_eth_queue *q, bool open)
{
	__netif_tx_lock_bh(tern_txq(q));
	q->open = open;
	__netif_tx_unlock_bh(tern_txq(q));
}

static int tern_eth_open_queue(struct tern_eth_queue *q)
{
	int err;

	WRITE_ONCE(q->failed, false); /* before the queue can fail again */
	err = tern_tx_open(q);
	if (err)
		return err;
	err = tern_rx_open(q);
	if (err)
		goto err_tx;
	err = tern_eth_create_qp(q);
	if (err)
		goto err_rx;

	local_bh_disable(); /* the page pool expects the context of NAPI */
	tern_rx_refill(q);
	local_bh_enable();
	err = tern_eth_start_qp(q);
	if (err)
		goto err_qp;
	tern_eth_set_open(q, true);
	return 0;

err_qp:
	tern_eth_destroy_qp(q);
err_rx:
	tern_rx_close(q);
err_tx:
	tern_tx_close(q);
	return err;
}

static void tern_eth_close_queue(struct tern_eth_queue *q)
{
	tern_eth_set_open(q, false);
	tern_eth_destroy_qp(q);
	tern_rx_close(q);
	tern_tx_close(q);
}

/* A CPU sends through the queue whose interrupts it gets, unless somebody has chosen otherwise. */
static void tern_eth_set_xps(struct tern_eth_queue *q)
{
	const struct tern_eq *eq = tern_eq_of_comp_vector(&q->nd->tdev->engines[0], q->index);
	const struct cpumask *mask = irq_get_affinity_mask(eq->vector->irq);

	if (mask && !q->has_xps)
		q->has_xps = !netif_set_xps_queue(q->nd->ndev, mask, q->index);
}

static void tern_eth_start_queue(struct tern_eth_queue *q)
{
	tern_eth_set_xps(q);
	napi_enable(&q->napi);
	netif_tx_wake_queue(tern_txq(q));
	/* The first poll arms the CQs. */
	local_bh_disable();
	napi_schedule(&q->napi);
	local_bh_enable();
}

/* NAPI first, since it wakes the transmit queue. The lock waits for a sender. */
static void tern_eth_stop_queue(struct tern_eth_queue *q)
{
	napi_disable(&q->napi);
	__netif_tx_lock_bh(tern_txq(q));
	netif_tx_stop_queue(tern_txq(q));
	__netif_tx_unlock_bh(tern_txq(q));
}

/* ---- restart ---------------------------------------------------------------------- */

/* The first restart has no delay. The delay then doubles, up to less than the watchdog's time. */
#define TERN_RESTART_MIN	(HZ / 100)
#define TERN_RESTART_MAX	(4 * HZ)
/* A restart has no delay if the previous restart is longer ago than this. */
#define TERN_RESTART_CALM	(10 * HZ)

/*
 * For a queue that no longer works: its QP or a CQ failed, or it does not send. Stops sending and
 * receiving, and schedules the restart. From any context.
 */
void tern_eth_fail(struct tern_eth_queue *q)
{
	bool calm = time_after(jiffies, READ_ONCE(q->restarted) + TERN_RESTART_CALM);

	WRITE_ONCE(q->failed, true);
	netif_tx_stop_queue(tern_txq(q));
	txq_trans_cond_update(tern_txq(q)); /* the watchdog counts from here on */
	schedule_delayed_work(&q->restart_work, calm ? 0 : READ_ONCE(q->backoff));
}

/* Gives the queue new rings. On failure it stays closed. */
static int tern_eth_restart(struct tern_eth_queue *q)
{
	int err;

	if (q->open) {
		tern_eth_stop_queue(q);
		tern_eth_close_queue(q);
	}
	err = tern_eth_open_queue(q);
	if (err)
		return err;
	err = tern_eth_set_rss(q->nd) ?: tern_eth_moderate(q->nd);
	if (err) {
		tern_eth_close_queue(q);
		return err;
	}
	tern_eth_start_queue(q);
	tern_rx_count_missed(q->nd); /* it had no buffers meanwhile */
	return 0;
}

static void tern_eth_try_restart(struct tern_eth_queue *q)
{
	bool calm = time_after(jiffies, q->restarted + TERN_RESTART_CALM);
	unsigned long next = min_t(unsigned long, 2 * q->backoff, TERN_RESTART_MAX);
	int err;

	q->restarts++;
	WRITE_ONCE(q->backoff, calm ? TERN_RESTART_MIN : next);
	err = tern_eth_restart(q);
	WRITE_ONCE(q->restarted, jiffies);
	trace_tern_queue_restart(q->nd->ndev, q->index, err, jiffies_to_msecs(q->backoff));
	if (!err) {
		netdev_warn(q->nd->ndev, "queue %u restarted after an error\n", q->index);
		return;
	}
	netdev_err(q->nd->ndev, "queue %u does not restart: %d\n", q->index, err);
	tern_eth_fail(q);
}

static bool tern_eth_any_reported(const struct tern_netdev *nd)
{
	u32 i;

	for (i = 0; i < nd->max_queues; i++)
		if (nd->queues[i].reported)
			return true;
	return false;
}

static void tern_eth_restart_work(struct work_struct *work)
{
	struct tern_eth_queue *q = container_of(to_delayed_work(work), struct tern_eth_queue,
						restart_work);
	struct tern_netdev *nd = q->nd;
	bool used, due, works, reported;

	rtnl_lock();
	/* The interface may have got new queues meanwhile, or fewer. */
	used = nd->open && q->index < nd->settings.queues;
	due = used && q->failed && !tern_is_dead(nd->tdev);
	if (due)
		tern_eth_try_restart(q);
	reported = q->reported;
	q->reported = used && q->failed && (due || reported);
	works = !tern_eth_any_reported(nd);
	rtnl_unlock();
	if (due)
		nd->tdev->upcalls->queue_failed(nd->tdev, q->index, works);
	else if (reported && works)
		nd->tdev->upcalls->queues_work(nd->tdev);
}

/* Puts the first queue in error, for the test command of the health reporter. */
int tern_eth_break(struct tern_netdev *nd)
{
	const struct tern_hw_qp_attr attr = { .state = TERN_QPS_ERR };

	if (!nd->open || !nd->queues[0].open)
		return -ENETDOWN;
	return tern_cmd_modify_qp(nd->tdev, nd->queues[0].qp_core.qpn, TERN_QP_STATE, &attr);
}

void tern_eth_init_queue(struct tern_netdev *nd, u32 index)
{
	struct tern_eth_queue *q = &nd->queues[index];

	q->nd = nd;
	q->index = index;
	q->restarted = jiffies - TERN_RESTART_CALM;
	u64_stats_init(&q->tx_stats.sync);
	u64_stats_init(&q->rx_stats.sync);
	INIT_DELAYED_WORK(&q->restart_work, tern_eth_restart_work);
	netif_napi_add(nd->ndev, &q->napi, tern_eth_poll);
}

/* ---- all of them ------------------------------------------------------------------ */

/* A queue whose restart failed has no QP. */
static bool tern_eth_all_open(const struct tern_netdev *nd)
{
	u32 i;

	for (i = 0; i < nd->settings.queues; i++)
		if (!nd->queues[i].open)
			return false;
	return true;
}

/* Sets rss_table and rss_key in the card; later, if a queue waits for its restart. */
int tern_eth_set_rss(struct tern_netdev *nd)
{
	struct device *dev = &nd->tdev->pdev->dev;
	struct tern_hw_set_eth_rss hw = {
		.hash_fields = cpu_to_le32(TERN_RSS_FIELDS),
		.log_size = TERN_MAX_LOG_WQ_TABLE,
	};
	size_t size = TERN_RSS_ENTRIES * sizeof(__le32);
	dma_addr_t dma;
	__le32 *qpns;
	int i, err;

	if (!(nd->tdev->caps & TERN_CAP_ETH_QUEUES) || !tern_eth_all_open(nd))
		return 0;
	qpns = kmalloc(size, GFP_KERNEL);
	if (!qpns)
		return -ENOMEM;
	for (i = 0; i < TERN_RSS_ENTRIES; i++)
		qpns[i] = cpu_to_le32(nd->queues[nd->rss_table[i]].qp_core.qpn);

	memcpy(hw.key, nd->rss_key, sizeof(hw.key));
	dma = dma_map_single(dev, qpns, size, DMA_TO_DEVICE);
	err = dma_mapping_error(dev, dma);
	if (!err) {
		hw.iova = cpu_to_le64(dma);
		err = tern_cmd_set_eth_rss(nd->tdev, &hw);
		dma_unmap_single(dev, dma, size, DMA_TO_DEVICE);
	}
	kfree(qpns);
	return err;
}

static int tern_eth_moderate_cq(struct tern_netdev *nd, const struct tern_cq_core *cq,
				const struct tern_moderation *to)
{
	return tern_cmd_moderate_cq(nd->tdev, cq->cqn, to->frames, to->usecs);
}

/* Applies tx_moderation and rx_moderation to the CQs of a running interface. */
int tern_eth_moderate(struct tern_netdev *nd)
{
	u32 i;
	int err = 0;

	if (!(nd->tdev->caps & TERN_CAP_MODIFY_CQ))
		return 0;
	for (i = 0; !err && i < nd->settings.queues; i++) {
		struct tern_eth_queue *q = &nd->queues[i];

		if (!q->open)
			continue;
		err = tern_eth_moderate_cq(nd, &q->tx.cq_core, &nd->tx_moderation);
		if (!err)
			err = tern_eth_moderate_cq(nd, &q->rx.cq_core, &nd->rx_moderation);
	}
	return err;
}

int tern_eth_open(struct tern_netdev *nd)
{
	u32 count = nd->settings.queues;
	u32 opened, i;
	int err = 0;

	for (opened = 0; opened < count; opened++) {
		err = tern_eth_open_queue(&nd->queues[opened]);
		if (err)
			goto err_queues;
	}
	err = tern_eth_set_rss(nd);
	if (!err)
		err = tern_eth_moderate(nd);
	if (!err)
		err = tern_rx_open_missed(nd);
	if (!err)
		err = netif_set_real_num_queues(nd->ndev, count, count);
	if (err)
		goto err_queues;
	/* The kernel has forgotten the CPUs of queues that are no longer in use. */
	for (i = count; i < nd->max_queues; i++)
		nd->queues[i].has_xps = false;
	nd->open = true;
	for (i = 0; i < count; i++)
		tern_eth_start_queue(&nd->queues[i]);
	/* Unused ones, too: the watchdog looks at all. */
	netif_tx_wake_all_queues(nd->ndev);
	for (i = 0; i < nd->max_queues; i++)
		if (nd->queues[i].reported) /* which is no longer true */
			schedule_delayed_work(&nd->queues[i].restart_work, 0);
	return 0;

err_queues:
	while (opened)
		tern_eth_close_queue(&nd->queues[--opened]);
	return err;
}

/* Does nothing if the interface has no queues: it is down, or tern_eth_open() failed. */
void tern_eth_close(struct tern_netdev *nd)
{
	u32 i;

	if (!nd->open)
		return;
	nd->open = false;
	for (i = 0; i < nd->settings.queues; i++) {
		if (!nd->queues[i].open)
			continue;
		tern_eth_stop_queue(&nd->queues[i]);
		tern_eth_close_queue(&nd->queues[i]);
	}
	tern_rx_close_missed(nd);
}
