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

void tern_eth_init_queue(struct tern_netdev *nd, u32 index)
{
	struct tern_eth_queue *q = &nd->queues[index];

	q->nd = nd;
	q->index = index;
	u64_stats_init(&q->tx_stats.sync);
	u64_stats_init(&q->rx_stats.sync);
	netif_napi_add(nd->ndev, &q->napi, tern_eth_poll);
}

/* ---- a queue pair ----------------------------------------------------------------- */

static void tern_eth_qp_event(struct tern_qp_core *core, u8 type)
{
	if (type == TERN_EVENT_QP_FATAL)
		tern_netdev_restart(container_of(core, struct tern_eth_queue, qp_core)->nd);
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

static int tern_eth_open_queue(struct tern_eth_queue *q)
{
	int err;

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
	tern_eth_destroy_qp(q);
	tern_rx_close(q);
	tern_tx_close(q);
}

/* A CPU sends through the queue whose interrupts it gets. */
static void tern_eth_set_xps(struct tern_eth_queue *q)
{
	const struct tern_eq *eq = tern_eq_of_comp_vector(&q->nd->tdev->engines[0], q->index);
	const struct cpumask *mask = irq_get_affinity_mask(eq->vector->irq);

	if (mask)
		netif_set_xps_queue(q->nd->ndev, mask, q->index);
}

/* ---- all of them ------------------------------------------------------------------ */

/* Sets rss_table and rss_key in the card. */
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

	if (!(nd->tdev->caps & TERN_CAP_ETH_QUEUES))
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

		err = tern_eth_moderate_cq(nd, &q->tx.cq_core, &nd->tx_moderation);
		if (!err)
			err = tern_eth_moderate_cq(nd, &q->rx.cq_core, &nd->rx_moderation);
	}
	return err;
}

static void tern_eth_start(struct tern_netdev *nd)
{
	u32 i;

	nd->open = true;
	for (i = 0; i < nd->settings.queues; i++) {
		tern_eth_set_xps(&nd->queues[i]);
		napi_enable(&nd->queues[i].napi);
	}
	netif_tx_wake_all_queues(nd->ndev);
	/* The first polls arm the CQs. */
	local_bh_disable();
	for (i = 0; i < nd->settings.queues; i++)
		napi_schedule(&nd->queues[i].napi);
	local_bh_enable();
}

int tern_eth_open(struct tern_netdev *nd)
{
	u32 count = nd->settings.queues;
	u32 opened;
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
		err = netif_set_real_num_queues(nd->ndev, count, count);
	if (err)
		goto err_queues;
	tern_eth_start(nd);
	return 0;

err_queues:
	while (opened)
		tern_eth_close_queue(&nd->queues[--opened]);
	return err;
}

/* Does nothing if the interface lost its rings because tern_eth_open() failed. */
void tern_eth_close(struct tern_netdev *nd)
{
	u32 i;

	if (!nd->open)
		return;
	nd->open = false;
	/* NAPI first, since it wakes the transmit queues. */
	for (i = 0; i < nd->settings.queues; i++)
		napi_disable(&nd->queues[i].napi);
	netif_tx_disable(nd->ndev);
	for (i = 0; i < nd->settings.queues; i++)
		tern_eth_close_queue(&nd->queues[i]);
}
