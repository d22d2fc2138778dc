// SPDX-License-Identifier: GPL-2.0
/* Transmit side of the Ethernet function: a frame is a send WQE of an ETH QP. */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <linux/tcp.h>

#include "eq.h"
#include "netdev.h"
#include "trace.h"

static u32 tern_tx_blocks_for(u32 segs)
{
	return DIV_ROUND_UP((1 + segs) * TERN_SEG_SIZE, TERN_SQ_BLOCK);
}

static u32 tern_tx_free_blocks(const struct tern_tx *tx)
{
	/* pairs with tern_tx_clean(), which publishes the CQ's index before it releases blocks */
	u32 released = smp_load_acquire(&tx->released);

	return tx->mask + 1 - (READ_ONCE(tx->pi) - released);
}

static bool tern_tx_has_room(const struct tern_tx *tx)
{
	return tern_tx_free_blocks(tx) >= tern_tx_blocks_for(tx->max_segs);
}

/* Where the mapping of data segment @seg of the WQE at @block is noted. */
static struct tern_tx_mapping *tern_tx_mapping_at(const struct tern_tx *tx, u32 block, u32 seg)
{
	u32 first = (block & tx->mask) * TERN_TX_BLOCK_SEGS;

	return &tx->mappings[(first + 1 + seg) & (TERN_TX_BLOCK_SEGS * (tx->mask + 1) - 1)];
}

static void tern_tx_set_seg(struct tern_eth_queue *q, u32 block, u32 seg, dma_addr_t dma,
			    u32 length)
{
	struct tern_hw_data_seg *data = tern_ring_qp_sq_seg(&q->qp, block, 1 + seg);

	*tern_tx_mapping_at(&q->tx, block, seg) = (struct tern_tx_mapping) {
		.dma = dma,
		.length = length,
	};

	*data = (struct tern_hw_data_seg) {
		.addr = cpu_to_le64(dma),
		.length = cpu_to_le32(length),
		.lkey = cpu_to_le32(TERN_LKEY_LOCAL_DMA),
	};
}

/*
 * Segment 0 is the linear part, the others are fragments. The WQE has the addresses, too, but a
 * card that does not keep to the rules may write there.
 */
static void tern_tx_unmap(struct tern_eth_queue *q, u32 block, u32 segs)
{
	struct device *dev = &q->nd->tdev->pdev->dev;
	u32 seg;

	for (seg = 0; seg < segs; seg++) {
		const struct tern_tx_mapping *m = tern_tx_mapping_at(&q->tx, block, seg);

		if (seg == 0)
			dma_unmap_single(dev, m->dma, m->length, DMA_TO_DEVICE);
		else
			dma_unmap_page(dev, m->dma, m->length, DMA_TO_DEVICE);
	}
}

/* Maps @skb and writes the data segments of its WQE; returns how many, or an error. */
static int tern_tx_map(struct tern_eth_queue *q, struct sk_buff *skb, u32 block)
{
	struct device *dev = &q->nd->tdev->pdev->dev;
	const struct skb_shared_info *shared;
	dma_addr_t dma;
	int segs = 0;

	if (skb_shinfo(skb)->nr_frags >= q->tx.max_segs && skb_linearize(skb))
		return -ENOMEM;
	shared = skb_shinfo(skb); /* linearizing may have moved it */
	dma = dma_map_single(dev, skb->data, skb_headlen(skb), DMA_TO_DEVICE);
	if (dma_mapping_error(dev, dma))
		return -ENOMEM;
	tern_tx_set_seg(q, block, segs++, dma, skb_headlen(skb));

	while (segs <= shared->nr_frags) {
		const skb_frag_t *frag = &shared->frags[segs - 1];

		dma = skb_frag_dma_map(dev, frag, 0, skb_frag_size(frag), DMA_TO_DEVICE);
		if (dma_mapping_error(dev, dma)) {
			tern_tx_unmap(q, block, segs);
			return -ENOMEM;
		}
		tern_tx_set_seg(q, block, segs++, dma, skb_frag_size(frag));
	}
	return segs;
}

/* The card computes the checksum and segments the frame if the stack asks for it. */
static void tern_tx_write_ctrl(struct tern_eth_queue *q, const struct sk_buff *skb, u32 block,
			       u32 segs)
{
	struct tern_hw_eth_ctrl_seg *ctrl = tern_ring_qp_sq_seg(&q->qp, block, 0);

	*ctrl = (struct tern_hw_eth_ctrl_seg) {
		.opcode = TERN_OP_SEND,
		.segs = 1 + segs,
	};
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return;
	ctrl->csum_start = cpu_to_le16(skb_checksum_start_offset(skb));
	ctrl->csum_offset = cpu_to_le16(skb->csum_offset);
	ctrl->mss = cpu_to_le16(skb_shinfo(skb)->gso_size);
}

/* ---- what the card can send ------------------------------------------------------------ */

static u32 tern_tx_max_frame(const struct net_device *ndev)
{
	return READ_ONCE(ndev->mtu) + VLAN_ETH_HLEN;
}

static bool tern_tx_can_sum(const struct sk_buff *skb)
{
	int start = skb_checksum_start_offset(skb);	/* negative if XDP has moved the data */

	return start >= ETH_HLEN && start + skb->csum_offset + sizeof(__sum16) <= skb->len;
}

/* Whether there is TCP between @net, the network header, and @tcp. All of it is linear. */
static bool tern_tx_is_tcp(const struct sk_buff *skb, __be16 ethertype, u32 net, u32 tcp)
{
	const struct iphdr *ip4 = (const void *)skb->data + net;
	const struct ipv6hdr *ip6 = (const void *)ip4;

	if (ethertype == htons(ETH_P_IP))
		return tcp >= net + sizeof(*ip4) && ip4->version == 4 &&
		       tcp == net + 4 * ip4->ihl && ip4->protocol == IPPROTO_TCP;
	return ethertype == htons(ETH_P_IPV6) && tcp == net + sizeof(*ip6) && ip6->version == 6 &&
	       ip6->nexthdr == IPPROTO_TCP;
}

/*
 * Whether the card can segment @skb. Sockets, guests and containers may send frames with any
 * headers, whose ethertype can differ from skb->protocol. The hardware-accelerated VLAN tag counts,
 * because the driver inserts it into the frame. The card segments frames with at most one tag.
 */
static bool tern_tx_can_segment(const struct sk_buff *skb, const struct net_device *ndev)
{
	const struct vlan_ethhdr *eth = (const void *)skb->data;
	u32 tag = skb_vlan_tag_present(skb) ? VLAN_HLEN : 0;
	u32 tcp = skb_checksum_start_offset(skb);
	u32 net = ETH_HLEN;
	__be16 ethertype = eth->h_vlan_proto;
	u32 head;

	if (skb->ip_summed != CHECKSUM_PARTIAL ||
	    skb->csum_offset != offsetof(struct tcphdr, check) ||
	    skb->len + tag > TERN_MAX_TSO || tcp < ETH_HLEN ||
	    tcp + sizeof(struct tcphdr) > skb_headlen(skb))
		return false;
	if (ethertype == htons(ETH_P_8021Q)) {
		ethertype = eth->h_vlan_encapsulated_proto;
		net = VLAN_ETH_HLEN;
	}
	head = tcp + 4 * ((const struct tcphdr *)(skb->data + tcp))->doff;
	return tern_tx_is_tcp(skb, ethertype, net, tcp) && head >= tcp + sizeof(struct tcphdr) &&
	       head < skb->len && head + tag + skb_shinfo(skb)->gso_size <= tern_tx_max_frame(ndev);
}

/* ---- sending --------------------------------------------------------------------------- */

/*
 * Publishes the WQEs that were written. Only the last WQE of a batch is signalled: its completion
 * stands for all before it.
 */
static void tern_tx_flush(struct tern_eth_queue *q)
{
	struct tern_hw_eth_ctrl_seg *ctrl;

	if (q->tx.pi == q->tx.published)
		return;
	ctrl = tern_ring_qp_sq_seg(&q->qp, q->tx.last, 0);
	ctrl->flags = TERN_WQE_SIGNALED;
	WRITE_ONCE(q->tx.published, q->tx.pi); /* before the card can complete them */
	tern_ring_qp_publish_sq(q->nd->tdev, &q->qp, q->tx.pi);
}

/* Stops the queue while a WQE of the largest size might not fit. */
static void tern_tx_stop_if_full(const struct tern_tx *tx, struct netdev_queue *txq)
{
	if (tern_tx_has_room(tx))
		return;
	netif_tx_stop_queue(txq);
	smp_mb(); /* pairs with tern_tx_clean(): one side sees the other's store */
	if (tern_tx_has_room(tx))
		netif_tx_start_queue(txq);
}

/* The stack asks before it sends, and then does itself what the card cannot do. */
netdev_features_t tern_features_check(struct sk_buff *skb, struct net_device *ndev,
				      netdev_features_t features)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL && !tern_tx_can_sum(skb))
		features &= ~(NETIF_F_CSUM_MASK | NETIF_F_GSO_MASK);
	if (skb_is_gso(skb) && !tern_tx_can_segment(skb, ndev))
		features &= ~NETIF_F_GSO_MASK;
	return vlan_features_check(skb, features);
}

/*
 * Whether the card can send @skb. After tern_features_check() it cannot if the frame or its
 * segments are longer than the MTU, which a bridge does not check. And the MTU may have changed
 * since, and generic XDP sends without that check.
 */
static bool tern_tx_possible(const struct sk_buff *skb, const struct net_device *ndev)
{
	if (skb_is_gso(skb))
		return tern_tx_can_segment(skb, ndev);
	return skb->len >= ETH_HLEN && skb->len <= tern_tx_max_frame(ndev) &&
	       (skb->ip_summed != CHECKSUM_PARTIAL || tern_tx_can_sum(skb));
}

netdev_tx_t tern_eth_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	struct tern_netdev *nd = netdev_priv(ndev);
	struct tern_eth_queue *q = &nd->queues[skb_get_queue_mapping(skb)];
	struct netdev_queue *txq = tern_txq(q);
	struct tern_tx *tx = &q->tx;
	u32 block = tx->pi;
	int segs;

	/* pktgen sends without a look at whether the queue is in use. */
	if (unlikely(!q->open)) {
		dev_kfree_skb_any(skb);
		dev_core_stats_tx_dropped_inc(ndev);
		return NETDEV_TX_OK;
	}
	/* tern_eth_open() and netif_device_attach() wake queues that may have become full since. */
	if (!tern_tx_has_room(tx)) {
		tern_tx_stop_if_full(tx, txq);
		return NETDEV_TX_BUSY;
	}
	if (!tern_tx_possible(skb, ndev))
		goto drop;
	segs = tern_tx_map(q, skb, block);
	if (segs < 0)
		goto drop;

	tern_tx_write_ctrl(q, skb, block, segs);
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
		tern_tx_flush(q);
	return NETDEV_TX_OK;

drop:
	trace_tern_tx_drop(ndev, q->index, skb->len, skb_shinfo(skb)->gso_size);
	dev_kfree_skb_any(skb);
	dev_core_stats_tx_dropped_inc(ndev);
	/* This was the last frame of a batch, so publish the frames before it. */
	if (!netdev_xmit_more())
		tern_tx_flush(q);
	return NETDEV_TX_OK;
}

/* Frees the oldest WQE. */
static void tern_tx_retire(struct tern_eth_queue *q, int budget)
{
	struct tern_tx *tx = &q->tx;
	struct tern_tx_slot *slot = &tx->slots[tx->ci & tx->mask];

	tern_tx_unmap(q, tx->ci, slot->segs);
	napi_consume_skb(slot->skb, budget);
	slot->skb = NULL;
	WRITE_ONCE(tx->ci, tx->ci + slot->blocks);
}

/* Retires the WQE that begins at the index of @cqe and all before it. */
static void tern_tx_complete(struct tern_eth_queue *q, const struct tern_hw_cqe *cqe, int budget)
{
	struct tern_tx *tx = &q->tx;
	u32 end = le32_to_cpu(cqe->wqe_index) + 1;
	u32 frames = 0, bytes = 0;

	if (cqe->status != TERN_WC_SUCCESS) {
		trace_tern_tx_error(q->nd->ndev, q->index, cqe);
		tern_queue_stats_error(&q->tx_stats);
		tern_eth_fail(q);
	}
	if (end - tx->ci > READ_ONCE(tx->published) - tx->ci) {
		tern_eth_fail(q);
		return;
	}

	while ((s32)(end - tx->ci) > 0) {
		const struct sk_buff *skb = tx->slots[tx->ci & tx->mask].skb;

		frames += skb_shinfo(skb)->gso_segs ?: 1;
		bytes += skb->len;
		tern_tx_retire(q, budget);
	}
	netdev_tx_completed_queue(tern_txq(q), frames, bytes);
	if (cqe->status == TERN_WC_SUCCESS)
		tern_queue_stats_add(&q->tx_stats, frames, bytes);
}

void tern_tx_clean(struct tern_eth_queue *q, int budget)
{
	struct netdev_queue *txq = tern_txq(q);
	struct tern_tx *tx = &q->tx;
	const struct tern_hw_cqe *cqe;
	u32 start = tx->cq.ci;

	/* Make at most one pass over the ring: a faulty card may write CQEs without end. */
	while (tx->cq.ci - start < tern_ring_cq_size(&tx->cq) &&
	       (cqe = tern_ring_cq_next(&tx->cq))) {
		tern_tx_complete(q, cqe, budget);
		tern_ring_cq_pop(&tx->cq);
	}
	if (tx->cq.ci == start)
		return;
	tern_ring_cq_consumed(&tx->cq);
	/* Each WQE may bring a CQE, so a sender gets blocks only when the CQ has room for it. */
	smp_store_release(&tx->released, tx->ci);

	smp_mb(); /* pairs with tern_tx_stop_if_full(): one side sees the other's store */
	if (netif_tx_queue_stopped(txq) && tern_tx_has_room(tx) && !READ_ONCE(q->failed))
		netif_tx_wake_queue(txq);
}

static void tern_tx_completed(struct tern_cq_core *core)
{
	napi_schedule(&container_of(core, struct tern_eth_queue, tx.cq_core)->napi);
}

static void tern_tx_failed(struct tern_cq_core *core)
{
	tern_eth_fail(container_of(core, struct tern_eth_queue, tx.cq_core));
}

int tern_tx_open(struct tern_eth_queue *q)
{
	struct tern_netdev *nd = q->nd;
	u8 log_size = nd->settings.tx_log_size;
	struct tern_tx *tx = &q->tx;
	int err;

	*tx = (struct tern_tx) {
		.mask = (1U << log_size) - 1,
		.max_segs = min_t(u32, nd->tdev->attr.max_send_sge, MAX_SKB_FRAGS + 1),
		.cq_core = {
			.eq = tern_eq_of_comp_vector(&nd->tdev->engines[0], q->index),
			.completed = tern_tx_completed,
			.failed = tern_tx_failed,
		},
	};
	tx->slots = kvcalloc(tx->mask + 1, sizeof(*tx->slots), GFP_KERNEL);
	tx->mappings = kvcalloc((tx->mask + 1) * TERN_TX_BLOCK_SEGS, sizeof(*tx->mappings),
				GFP_KERNEL);
	if (!tx->slots || !tx->mappings) {
		err = -ENOMEM;
		goto err_slots;
	}

	err = tern_cq_core_create_ring(nd->tdev, &tx->cq_core, &tx->cq, log_size);
	if (err)
		goto err_slots;
	return 0;

err_slots:
	kvfree(tx->mappings);
	kvfree(tx->slots);
	return err;
}

void tern_tx_close(struct tern_eth_queue *q)
{
	tern_cq_core_destroy_ring(q->nd->tdev, &q->tx.cq_core, &q->tx.cq);
	kvfree(q->tx.mappings);
	kvfree(q->tx.slots);
}

/* Drops the frames that were not sent. The QP is destroyed. */
void tern_tx_drain(struct tern_eth_queue *q)
{
	struct tern_tx *tx = &q->tx;

	while (tx->ci != tx->pi) {
		tern_tx_retire(q, 0);
		dev_core_stats_tx_dropped_inc(q->nd->ndev);
	}
	netdev_tx_reset_queue(tern_txq(q));
}
