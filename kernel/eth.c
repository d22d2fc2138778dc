// SPDX-License-Identifier: GPL-2.0
/*
 * The Ethernet data path: frames are sends and receives of a QP of type ETH, whose two CQs
 * share one NAPI context.
 */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "compat.h"
#include "netdev.h"
#include "tern.h"

#define TERN_TX_LOG_BLOCKS	10
#define TERN_RX_LOG_SIZE	9

/* A frame begins in its first page where build_skb() wants it, so it is never copied. */
#define TERN_RX_HEADROOM	(NET_SKB_PAD + NET_IP_ALIGN)
#define TERN_RX_FIRST_ROOM	(SKB_WITH_OVERHEAD(PAGE_SIZE) - TERN_RX_HEADROOM)

static u32 tern_tx_blocks_for(u32 segs)
{
	return DIV_ROUND_UP((1 + segs) * TERN_SEG_SIZE, TERN_SQ_BLOCK);
}

/* ---- transmit --------------------------------------------------------------- */

static u32 tern_tx_free_blocks(const struct tern_tx *tx)
{
	return tx->mask + 1 - (READ_ONCE(tx->pi) - READ_ONCE(tx->ci));
}

static bool tern_tx_has_room(const struct tern_tx *tx)
{
	return tern_tx_free_blocks(tx) >= tern_tx_blocks_for(tx->max_segs);
}

static void tern_tx_set_seg(struct tern_eth *eth, u32 block, u32 seg, dma_addr_t dma, u32 length)
{
	struct tern_hw_data_seg *data = tern_kqp_sq_seg(&eth->qp, block, 1 + seg);

	*data = (struct tern_hw_data_seg) {
		.addr = cpu_to_le64(dma),
		.length = cpu_to_le32(length),
		.lkey = cpu_to_le32(TERN_LKEY_LOCAL_DMA),
	};
}

/* The WQE itself remembers what to unmap: segment 0 is the linear part, the others fragments. */
static void tern_tx_unmap(struct tern_netdev *nd, u32 block, u32 segs)
{
	struct device *dev = &nd->tdev->pdev->dev;
	u32 seg;

	for (seg = 0; seg < segs; seg++) {
		const struct tern_hw_data_seg *data =
			tern_kqp_sq_seg(&nd->eth.qp, block, 1 + seg);
		dma_addr_t dma = le64_to_cpu(data->addr);
		u32 length = le32_to_cpu(data->length);

		if (seg == 0)
			dma_unmap_single(dev, dma, length, DMA_TO_DEVICE);
		else
			dma_unmap_page(dev, dma, length, DMA_TO_DEVICE);
	}
}

/* Maps @skb and writes the data segments of its WQE; returns how many, or an error. */
static int tern_tx_map(struct tern_netdev *nd, struct sk_buff *skb, u32 block)
{
	struct device *dev = &nd->tdev->pdev->dev;
	struct skb_shared_info *shared = skb_shinfo(skb);
	dma_addr_t dma;
	int segs = 0;

	if (shared->nr_frags >= nd->eth.tx.max_segs && skb_linearize(skb))
		return -ENOMEM;
	dma = dma_map_single(dev, skb->data, skb_headlen(skb), DMA_TO_DEVICE);
	if (dma_mapping_error(dev, dma))
		return -ENOMEM;
	tern_tx_set_seg(&nd->eth, block, segs++, dma, skb_headlen(skb));

	while (segs <= shared->nr_frags) {
		const skb_frag_t *frag = &shared->frags[segs - 1];

		dma = skb_frag_dma_map(dev, frag, 0, skb_frag_size(frag), DMA_TO_DEVICE);
		if (dma_mapping_error(dev, dma)) {
			tern_tx_unmap(nd, block, segs);
			return -ENOMEM;
		}
		tern_tx_set_seg(&nd->eth, block, segs++, dma, skb_frag_size(frag));
	}
	return segs;
}

static void tern_tx_write_ctrl(struct tern_eth *eth, u32 block, u32 segs)
{
	struct tern_hw_ctrl_seg *ctrl = tern_kqp_sq_seg(&eth->qp, block, 0);

	*ctrl = (struct tern_hw_ctrl_seg) {
		.opcode = TERN_OP_SEND,
		.segs = 1 + segs,
	};
}

/*
 * Hands what was written to the card. Only the last WQE of a batch is signalled: its completion
 * is that of all before it.
 */
static void tern_tx_flush(struct tern_netdev *nd)
{
	struct tern_eth *eth = &nd->eth;
	struct tern_hw_ctrl_seg *ctrl;

	if (eth->tx.pi == eth->qp.sq_pi)
		return;
	ctrl = tern_kqp_sq_seg(&eth->qp, eth->tx.last, 0);
	ctrl->flags = TERN_WQE_SIGNALED;
	tern_kqp_publish_sq(nd->tdev, &eth->qp, eth->tx.pi);
}

/* Stops the queue while a WQE of the largest size might not fit. */
static void tern_tx_stop_if_full(const struct tern_tx *tx, struct netdev_queue *txq)
{
	if (tern_tx_has_room(tx))
		return;
	netif_tx_stop_queue(txq);
	smp_mb(); /* with tern_tx_clean(): either sees the other's store */
	if (tern_tx_has_room(tx))
		netif_tx_start_queue(txq);
}

netdev_tx_t tern_eth_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	struct tern_netdev *nd = netdev_priv(ndev);
	struct netdev_queue *txq = netdev_get_tx_queue(ndev, 0);
	struct tern_tx *tx = &nd->eth.tx;
	u32 block = tx->pi;
	int segs;

	segs = tern_tx_map(nd, skb, block);
	if (segs < 0)
		goto drop;

	tern_tx_write_ctrl(&nd->eth, block, segs);
	tx->slots[block & tx->mask] = (struct tern_tx_slot) {
		.skb = skb,
		.blocks = tern_tx_blocks_for(segs),
		.segs = segs,
	};
	tx->last = block;
	WRITE_ONCE(tx->pi, block + tern_tx_blocks_for(segs));
	skb_tx_timestamp(skb);
	tern_tx_stop_if_full(tx, txq);
	if (__netdev_tx_sent_queue(txq, skb->len, netdev_xmit_more()))
		tern_tx_flush(nd);
	return NETDEV_TX_OK;

drop:
	dev_kfree_skb_any(skb);
	dev_core_stats_tx_dropped_inc(ndev);
	/* The frames before this one may have relied on it for the doorbell. */
	if (!netdev_xmit_more())
		tern_tx_flush(nd);
	return NETDEV_TX_OK;
}

/* Frees the WQE at the head of the ring. */
static u32 tern_tx_retire(struct tern_netdev *nd, int budget)
{
	struct tern_tx *tx = &nd->eth.tx;
	struct tern_tx_slot *slot = &tx->slots[tx->ci & tx->mask];
	u32 bytes = slot->skb->len;

	tern_tx_unmap(nd, tx->ci, slot->segs);
	napi_consume_skb(slot->skb, budget);
	slot->skb = NULL;
	WRITE_ONCE(tx->ci, tx->ci + slot->blocks);
	return bytes;
}

/* Retires what @cqe completes: the WQE that began at its index and all before it. */
static void tern_tx_complete(struct tern_netdev *nd, const struct tern_hw_cqe *cqe, int budget)
{
	struct net_device *ndev = nd->ndev;
	struct tern_tx *tx = &nd->eth.tx;
	u32 end = le32_to_cpu(cqe->wqe_index) + 1;
	u32 packets = 0, bytes = 0;

	if (cqe->status != TERN_WC_SUCCESS) {
		ndev->stats.tx_errors++;
		tern_netdev_restart(nd);
	}
	if (end - tx->ci > READ_ONCE(tx->pi) - tx->ci)
		return;

	while ((s32)(end - tx->ci) > 0) {
		bytes += tern_tx_retire(nd, budget);
		packets++;
	}
	netdev_tx_completed_queue(netdev_get_tx_queue(ndev, 0), packets, bytes);
	if (cqe->status == TERN_WC_SUCCESS)
		dev_sw_netstats_tx_add(ndev, packets, bytes);
}

static void tern_tx_clean(struct tern_netdev *nd, int budget)
{
	struct netdev_queue *txq = netdev_get_tx_queue(nd->ndev, 0);
	struct tern_tx *tx = &nd->eth.tx;
	const struct tern_hw_cqe *cqe;
	u32 start = tx->cq.ci;

	while ((cqe = tern_kcq_next(&tx->cq))) {
		tern_tx_complete(nd, cqe, budget);
		tern_kcq_pop(&tx->cq);
	}
	if (tx->cq.ci == start)
		return;
	tern_kcq_consumed(&tx->cq);

	smp_mb(); /* with tern_tx_stop_if_full(): either sees the other's store */
	if (netif_tx_queue_stopped(txq) && tern_tx_has_room(tx))
		netif_tx_wake_queue(txq);
}

/* ---- receive ------------------------------------------------------------------ */

/* How many pages a frame of the MTU (with a VLAN tag) fills. */
static u32 tern_rx_pages_for(u32 mtu)
{
	u32 frame = mtu + VLAN_ETH_HLEN;

	BUILD_BUG_ON(TERN_RX_FIRST_ROOM + (TERN_RX_MAX_PAGES - 1) * PAGE_SIZE <
		     TERN_MAX_MTU + VLAN_ETH_HLEN);

	if (frame <= TERN_RX_FIRST_ROOM)
		return 1;
	return 1 + DIV_ROUND_UP(frame - TERN_RX_FIRST_ROOM, PAGE_SIZE);
}

static u32 tern_rx_capacity(const struct tern_rx *rx)
{
	return TERN_RX_FIRST_ROOM + (rx->npages - 1) * PAGE_SIZE;
}

static void tern_rx_write_wqe(struct tern_eth *eth, const struct tern_rx_slot *slot)
{
	struct tern_hw_data_seg *data = tern_kqp_rq_wqe(&eth->qp, eth->rx.pi);
	u32 i;

	for (i = 0; i < eth->rx.npages; i++) {
		dma_addr_t dma = page_pool_get_dma_addr(slot->pages[i]);

		data[i] = (struct tern_hw_data_seg) {
			.addr = cpu_to_le64(i ? dma : dma + TERN_RX_HEADROOM),
			.length = cpu_to_le32(i ? PAGE_SIZE : TERN_RX_FIRST_ROOM),
			.lkey = cpu_to_le32(TERN_LKEY_LOCAL_DMA),
		};
	}
	if (TERN_SEG_SIZE * i < 1U << eth->qp.layout.rq_log_stride)
		data[i].lkey = cpu_to_le32(TERN_LKEY_END);
}

/* Gives @slot the pages that the last frame in it took away. */
static bool tern_rx_fill_slot(struct tern_rx *rx, struct tern_rx_slot *slot)
{
	u32 i;

	for (i = 0; i < rx->npages; i++) {
		if (slot->pages[i])
			continue;
		slot->pages[i] = page_pool_dev_alloc_pages(rx->pool);
		if (!slot->pages[i])
			return false;
	}
	return true;
}

static void tern_rx_refill(struct tern_eth *eth)
{
	struct tern_rx *rx = &eth->rx;
	u32 start = rx->pi;

	while (rx->pi - rx->ci <= rx->mask) {
		struct tern_rx_slot *slot = &rx->slots[rx->pi & rx->mask];

		if (!tern_rx_fill_slot(rx, slot))
			break;
		tern_rx_write_wqe(eth, slot);
		rx->pi++;
	}
	if (rx->pi != start)
		tern_kqp_publish_rq(&eth->qp, rx->pi);
	WRITE_ONCE(rx->starved, rx->pi - rx->ci <= rx->mask / 2);
}

/* Takes page @i of @slot for the CPU, with @length bytes of the frame at @offset. */
static struct page *tern_rx_take_page(struct tern_netdev *nd, struct tern_rx_slot *slot, u32 i,
				      u32 offset, u32 length)
{
	struct page *page = slot->pages[i];

	dma_sync_single_range_for_cpu(&nd->tdev->pdev->dev, page_pool_get_dma_addr(page),
				      offset, length, DMA_FROM_DEVICE);
	slot->pages[i] = NULL;
	return page;
}

/* Builds the frame of @length bytes from pages of @slot; those it does not need stay there. */
static struct sk_buff *tern_rx_build(struct tern_netdev *nd, struct tern_rx_slot *slot, u32 length)
{
	u32 first = min_t(u32, length, TERN_RX_FIRST_ROOM);
	struct sk_buff *skb;
	u32 i;

	skb = napi_build_skb(page_address(slot->pages[0]), PAGE_SIZE);
	if (!skb)
		return NULL;
	skb_mark_for_recycle(skb);
	tern_rx_take_page(nd, slot, 0, TERN_RX_HEADROOM, first);
	skb_reserve(skb, TERN_RX_HEADROOM);
	skb_put(skb, first);
	length -= first;

	for (i = 1; length; i++) {
		u32 part = min_t(u32, length, PAGE_SIZE);
		struct page *page = tern_rx_take_page(nd, slot, i, 0, part);

		skb_add_rx_frag(skb, i - 1, page, 0, part, PAGE_SIZE);
		length -= part;
	}
	return skb;
}

static void tern_rx_deliver(struct tern_netdev *nd, struct tern_rx_slot *slot, u32 length)
{
	struct net_device *ndev = nd->ndev;
	struct sk_buff *skb = tern_rx_build(nd, slot, length);

	if (!skb) {
		dev_core_stats_rx_dropped_inc(ndev);
		return;
	}
	dev_sw_netstats_rx_add(ndev, length);
	skb_record_rx_queue(skb, 0);
	skb->protocol = eth_type_trans(skb, ndev);
	napi_gro_receive(&nd->napi, skb);
}

static void tern_rx_complete(struct tern_netdev *nd, const struct tern_hw_cqe *cqe)
{
	struct tern_rx *rx = &nd->eth.rx;
	u32 length = le32_to_cpu(cqe->byte_len);

	/* Receives complete in the order in which they were posted. */
	if (rx->ci == rx->pi || le32_to_cpu(cqe->wqe_index) != rx->ci) {
		nd->ndev->stats.rx_errors++;
		tern_netdev_restart(nd);
		return;
	}
	if (cqe->status != TERN_WC_SUCCESS) {
		nd->ndev->stats.rx_errors++;
		tern_netdev_restart(nd);
	} else if (length < ETH_HLEN || length > tern_rx_capacity(rx)) {
		nd->ndev->stats.rx_length_errors++;
	} else {
		tern_rx_deliver(nd, &rx->slots[rx->ci & rx->mask], length);
	}
	rx->ci++;
}

static int tern_rx_clean(struct tern_netdev *nd, int budget)
{
	struct tern_rx *rx = &nd->eth.rx;
	const struct tern_hw_cqe *cqe;
	int done = 0;

	while (done < budget && (cqe = tern_kcq_next(&rx->cq))) {
		tern_rx_complete(nd, cqe);
		tern_kcq_pop(&rx->cq);
		done++;
	}
	if (done)
		tern_kcq_consumed(&rx->cq);
	if (budget)
		tern_rx_refill(&nd->eth);
	return done;
}

int tern_eth_poll(struct napi_struct *napi, int budget)
{
	struct tern_netdev *nd = container_of(napi, struct tern_netdev, napi);
	int done;

	tern_tx_clean(nd, budget);
	done = tern_rx_clean(nd, budget);
	if (done < budget && napi_complete_done(napi, done)) {
		tern_kcq_arm(nd->tdev, &nd->eth.tx.cq, false);
		tern_kcq_arm(nd->tdev, &nd->eth.rx.cq, false);
	}
	return done;
}

/* ---- up and down ---------------------------------------------------------------- */

static void tern_eth_tx_completed(struct tern_cq_core *core)
{
	struct tern_netdev *nd = container_of(core, struct tern_netdev, eth.tx.cq_core);

	napi_schedule(&nd->napi);
}

static void tern_eth_tx_failed(struct tern_cq_core *core)
{
	tern_netdev_restart(container_of(core, struct tern_netdev, eth.tx.cq_core));
}

static void tern_eth_rx_completed(struct tern_cq_core *core)
{
	struct tern_netdev *nd = container_of(core, struct tern_netdev, eth.rx.cq_core);

	napi_schedule(&nd->napi);
}

static void tern_eth_rx_failed(struct tern_cq_core *core)
{
	tern_netdev_restart(container_of(core, struct tern_netdev, eth.rx.cq_core));
}

static void tern_eth_qp_event(struct tern_qp_core *core, u8 type)
{
	if (type == TERN_EVENT_QP_FATAL)
		tern_netdev_restart(container_of(core, struct tern_netdev, eth.qp_core));
}

static int tern_tx_open(struct tern_netdev *nd)
{
	const struct tern_device_attr *attr = &nd->tdev->attr;
	struct tern_tx *tx = &nd->eth.tx;
	u8 log_size = min3((u8)TERN_TX_LOG_BLOCKS, attr->max_sq_log_size, attr->max_cq_log_size);
	int err;

	*tx = (struct tern_tx) {
		.mask = (1U << log_size) - 1,
		.max_segs = min_t(u32, attr->max_send_sge, MAX_SKB_FRAGS + 1),
		.cq_core = {
			.eq = tern_eq_of_comp_vector(nd->tdev, 0),
			.completed = tern_eth_tx_completed,
			.failed = tern_eth_tx_failed,
		},
	};
	tx->slots = kvcalloc(tx->mask + 1, sizeof(*tx->slots), GFP_KERNEL);
	if (!tx->slots)
		return -ENOMEM;

	err = tern_kcq_create(nd->tdev, &tx->cq, &tx->cq_core, log_size);
	if (err)
		kvfree(tx->slots);
	return err;
}

static void tern_tx_close(struct tern_netdev *nd)
{
	tern_kcq_destroy(nd->tdev, &nd->eth.tx.cq);
	kvfree(nd->eth.tx.slots);
}

/* The QP has stopped: what it did not send is dropped. */
static void tern_tx_drain(struct tern_netdev *nd)
{
	struct tern_tx *tx = &nd->eth.tx;

	while (tx->ci != tx->pi) {
		tern_tx_retire(nd, 0);
		dev_core_stats_tx_dropped_inc(nd->ndev);
	}
	netdev_tx_reset_queue(netdev_get_tx_queue(nd->ndev, 0));
}

static struct page_pool *tern_rx_create_pool(struct tern_netdev *nd)
{
	struct device *dev = &nd->tdev->pdev->dev;
	const struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.pool_size = (nd->eth.rx.mask + 1) * nd->eth.rx.npages,
		.nid = dev_to_node(dev),
		.dev = dev,
		.dma_dir = DMA_FROM_DEVICE,
		.max_len = PAGE_SIZE,
	};

	return page_pool_create(&params);
}

static int tern_rx_open(struct tern_netdev *nd)
{
	const struct tern_device_attr *attr = &nd->tdev->attr;
	struct tern_rx *rx = &nd->eth.rx;
	u8 log_size = min3((u8)TERN_RX_LOG_SIZE, attr->max_rq_log_size, attr->max_cq_log_size);
	int err;

	*rx = (struct tern_rx) {
		.mask = (1U << log_size) - 1,
		.npages = tern_rx_pages_for(nd->ndev->mtu),
		.cq_core = {
			.eq = tern_eq_of_comp_vector(nd->tdev, 0),
			.completed = tern_eth_rx_completed,
			.failed = tern_eth_rx_failed,
		},
	};
	rx->slots = kvcalloc(rx->mask + 1, sizeof(*rx->slots), GFP_KERNEL);
	if (!rx->slots)
		return -ENOMEM;

	rx->pool = tern_rx_create_pool(nd);
	if (IS_ERR(rx->pool)) {
		err = PTR_ERR(rx->pool);
		goto err_slots;
	}
	err = tern_kcq_create(nd->tdev, &rx->cq, &rx->cq_core, log_size);
	if (err)
		goto err_pool;
	return 0;

err_pool:
	page_pool_destroy(rx->pool);
err_slots:
	kvfree(rx->slots);
	return err;
}

static void tern_rx_drain(struct tern_netdev *nd)
{
	struct tern_rx *rx = &nd->eth.rx;
	u32 slot, i;

	for (slot = 0; slot <= rx->mask; slot++) {
		for (i = 0; i < rx->npages; i++) {
			if (rx->slots[slot].pages[i])
				page_pool_put_full_page(rx->pool, rx->slots[slot].pages[i], false);
		}
	}
}

static void tern_rx_close(struct tern_netdev *nd)
{
	struct tern_rx *rx = &nd->eth.rx;

	tern_kcq_destroy(nd->tdev, &rx->cq);
	WRITE_ONCE(rx->starved, false);
	page_pool_destroy(rx->pool);
	kvfree(rx->slots);
}

/* An ETH QP has no peer, so it goes from state to state without attributes. */
static int tern_eth_start_qp(struct tern_netdev *nd)
{
	static const u8 states[] = { TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS };
	int i, err = 0;

	for (i = 0; !err && i < ARRAY_SIZE(states); i++) {
		struct tern_hw_qp_attr attr = { .state = states[i] };

		err = tern_cmd_modify_qp(nd->tdev, nd->eth.qp_core.qpn, TERN_QP_STATE, &attr);
	}
	return err;
}

static int tern_eth_create_qp(struct tern_netdev *nd)
{
	struct tern_eth *eth = &nd->eth;
	struct tern_qp_core_params params = {
		.type = TERN_QPT_ETH,
		.pdn = nd->tdev->kernel_pdn,
		.send_cqn = eth->tx.cq_core.cqn,
		.recv_cqn = eth->rx.cq_core.cqn,
		.db_page = TERN_DB_PAGE_KERNEL,
	};
	struct tern_qp_layout layout;

	tern_qp_plan(&layout, ilog2(eth->tx.mask + 1), ilog2(eth->rx.mask + 1),
		     order_base_2(eth->rx.npages * TERN_SEG_SIZE));
	eth->qp_core.event = tern_eth_qp_event;
	return tern_kqp_create(nd->tdev, &eth->qp, &eth->qp_core, &layout, &params);
}

static void tern_eth_destroy_qp(struct tern_netdev *nd)
{
	tern_kqp_stop(nd->tdev, &nd->eth.qp);
	tern_tx_drain(nd);
	tern_rx_drain(nd);
	tern_kqp_free(nd->tdev, &nd->eth.qp);
}

/* Under the RTNL, as tern_eth_close(). */
int tern_eth_open(struct tern_netdev *nd)
{
	int err;

	err = tern_tx_open(nd);
	if (err)
		return err;
	err = tern_rx_open(nd);
	if (err)
		goto err_tx;
	err = tern_eth_create_qp(nd);
	if (err)
		goto err_rx;

	local_bh_disable(); /* the pool's allocator belongs to NAPI */
	tern_rx_refill(&nd->eth);
	local_bh_enable();
	err = tern_eth_start_qp(nd);
	if (err)
		goto err_qp;

	nd->open = true;
	napi_enable(&nd->napi);
	netif_tx_wake_all_queues(nd->ndev);
	/* The first poll arms both CQs. */
	local_bh_disable();
	napi_schedule(&nd->napi);
	local_bh_enable();
	return 0;

err_qp:
	tern_eth_destroy_qp(nd);
err_rx:
	tern_rx_close(nd);
err_tx:
	tern_tx_close(nd);
	return err;
}

/* Does nothing if an attempt to open again has failed. */
void tern_eth_close(struct tern_netdev *nd)
{
	if (!nd->open)
		return;
	nd->open = false;
	/* NAPI first, for it wakes the transmit queue. */
	napi_disable(&nd->napi);
	netif_tx_disable(nd->ndev);
	tern_eth_destroy_qp(nd);
	tern_rx_close(nd);
	tern_tx_close(nd);
}
