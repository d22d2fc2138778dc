// SPDX-License-Identifier: GPL-2.0
/* Receive side of the Ethernet function: the receive WQEs of an ETH QP hold pages of a pool. */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/slab.h>

#include "compat.h"
#include "eq.h"
#include "netdev.h"
#include "trace.h"

/* The headroom of build_skb(), so that a frame is not copied. */
#define TERN_RX_HEADROOM	(NET_SKB_PAD + NET_IP_ALIGN)
#define TERN_RX_FIRST_ROOM	(SKB_WITH_OVERHEAD(PAGE_SIZE) - TERN_RX_HEADROOM)

/* The number of pages of a frame of size @mtu with a VLAN tag. */
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

static void tern_rx_write_wqe(struct tern_eth_queue *q, const struct tern_rx_slot *slot)
{
	struct tern_hw_data_seg *data = tern_ring_qp_rq_wqe(&q->qp, q->rx.pi);
	u32 i;

	for (i = 0; i < q->rx.npages; i++) {
		dma_addr_t dma = page_pool_get_dma_addr(slot->pages[i]);

		data[i] = (struct tern_hw_data_seg) {
			.addr = cpu_to_le64(i ? dma : dma + TERN_RX_HEADROOM),
			.length = cpu_to_le32(i ? PAGE_SIZE : TERN_RX_FIRST_ROOM),
			.lkey = cpu_to_le32(TERN_LKEY_LOCAL_DMA),
		};
	}
	if (TERN_SEG_SIZE * i < 1U << q->qp.layout.rq_log_stride)
		data[i].lkey = cpu_to_le32(TERN_LKEY_END);
}

/* Replaces the pages of @slot that the last frame took. */
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

void tern_rx_refill(struct tern_eth_queue *q)
{
	struct tern_rx *rx = &q->rx;
	u32 start = rx->pi;

	while (rx->pi - rx->ci <= rx->mask) {
		struct tern_rx_slot *slot = &rx->slots[rx->pi & rx->mask];

		if (!tern_rx_fill_slot(rx, slot))
			break;
		tern_rx_write_wqe(q, slot);
		rx->pi++;
	}
	if (rx->pi != start)
		tern_ring_qp_publish_rq(&q->qp, rx->pi);
}

/* Takes page @i out of @slot, with @length bytes of the frame at @offset. */
static struct page *tern_rx_take_page(struct tern_eth_queue *q, struct tern_rx_slot *slot, u32 i,
				      u32 offset, u32 length)
{
	struct page *page = slot->pages[i];

	dma_sync_single_range_for_cpu(&q->nd->tdev->pdev->dev, page_pool_get_dma_addr(page),
				      offset, length, DMA_FROM_DEVICE);
	slot->pages[i] = NULL;
	return page;
}

/* Builds a frame of @length bytes from pages of @slot. Pages that it does not need stay. */
static struct sk_buff *tern_rx_build(struct tern_eth_queue *q, struct tern_rx_slot *slot,
				     u32 length)
{
	u32 first = min_t(u32, length, TERN_RX_FIRST_ROOM);
	struct sk_buff *skb;
	u32 i;

	skb = napi_build_skb(page_address(slot->pages[0]), PAGE_SIZE);
	if (!skb)
		return NULL;
	skb_mark_for_recycle(skb);
	tern_rx_take_page(q, slot, 0, TERN_RX_HEADROOM, first);
	skb_reserve(skb, TERN_RX_HEADROOM);
	skb_put(skb, first);
	length -= first;

	for (i = 1; length; i++) {
		u32 part = min_t(u32, length, PAGE_SIZE);
		struct page *page = tern_rx_take_page(q, slot, i, 0, part);

		skb_add_rx_frag(skb, i - 1, page, 0, part, PAGE_SIZE);
		length -= part;
	}
	return skb;
}

/* Sets checksum state and hash from the CQE. */
static void tern_rx_annotate(const struct net_device *ndev, struct sk_buff *skb,
			     const struct tern_hw_cqe *cqe)
{
	bool l4_ok = cqe->flags & TERN_CQE_L4_OK;
	u32 hash = le32_to_cpu(cqe->hash);

	if (l4_ok && ndev->features & NETIF_F_RXCSUM)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	if (hash && ndev->features & NETIF_F_RXHASH)
		skb_set_hash(skb, hash, l4_ok ? PKT_HASH_TYPE_L4 : PKT_HASH_TYPE_L3);
}

static void tern_rx_deliver(struct tern_eth_queue *q, struct tern_rx_slot *slot,
			    const struct tern_hw_cqe *cqe)
{
	struct net_device *ndev = q->nd->ndev;
	u32 length = le32_to_cpu(cqe->byte_len);
	struct sk_buff *skb = tern_rx_build(q, slot, length);

	if (!skb) {
		dev_core_stats_rx_dropped_inc(ndev);
		return;
	}
	tern_queue_stats_add(&q->rx_stats, 1, length);
	skb_record_rx_queue(skb, q->index);
	tern_rx_annotate(ndev, skb, cqe);
	skb->protocol = eth_type_trans(skb, ndev);
	if (skb->pkt_type == PACKET_MULTICAST)
		tern_queue_stats_multicast(&q->rx_stats);
	napi_gro_receive(&q->napi, skb);
}

static void tern_rx_complete(struct tern_eth_queue *q, const struct tern_hw_cqe *cqe)
{
	struct tern_rx *rx = &q->rx;
	u32 length = le32_to_cpu(cqe->byte_len);

	/* Receives complete in the order of posting. */
	if (rx->ci == rx->pi || le32_to_cpu(cqe->wqe_index) != rx->ci) {
		trace_tern_rx_error(q->nd->ndev, q->index, cqe);
		tern_queue_stats_error(&q->rx_stats);
		tern_eth_fail(q);
		return;
	}
	if (cqe->status != TERN_WC_SUCCESS) {
		trace_tern_rx_error(q->nd->ndev, q->index, cqe);
		tern_queue_stats_error(&q->rx_stats);
		tern_eth_fail(q);
	} else if (length < ETH_HLEN || length > tern_rx_capacity(rx)) {
		tern_queue_stats_error(&q->rx_stats);
	} else {
		tern_rx_deliver(q, &rx->slots[rx->ci & rx->mask], cqe);
	}
	rx->ci++;
}

/*
 * Returns whether the card has completed all receives before @posted, and so may have dropped
 * frames. Call this after the receives from @posted on were published.
 */
static bool tern_rx_ran_empty(const struct tern_rx *rx, u32 posted)
{
	u32 left = posted - rx->ci;

	mb(); /* publishes the new receives before the CQE is read */
	return !left || tern_ring_cq_written(&rx->cq, rx->cq.ci + left - 1);
}

int tern_rx_clean(struct tern_eth_queue *q, int budget)
{
	struct tern_rx *rx = &q->rx;
	const struct tern_hw_cqe *cqe;
	int done = 0;

	while (done < budget && (cqe = tern_ring_cq_next(&rx->cq))) {
		tern_rx_complete(q, cqe);
		tern_ring_cq_pop(&rx->cq);
		done++;
	}
	if (done)
		tern_ring_cq_consumed(&rx->cq);
	/* A failed QP would flush what it gets. */
	if (budget && !READ_ONCE(q->failed)) {
		u32 posted = rx->pi;

		tern_rx_refill(q);
		if (tern_rx_ran_empty(rx, posted))
			tern_rx_count_missed(q->nd);
	}
	return done;
}

/* ---- frames that the card missed ---------------------------------------------------- */

/*
 * The card counts the frames that it drops because no buffer is posted. The admin command that
 * reads this counter sleeps, so a delayed work sends it, and only after a queue has run out of
 * buffers. This is the delay, in jiffies, and so the shortest time between two reads.
 */
#define TERN_MISSED_PERIOD	HZ

/* The first engine has the Ethernet function. */
static int tern_rx_query_missed(struct tern_netdev *nd, u64 *count)
{
	u64 values[TERN_STAT_COUNT] = {};
	int err = tern_stats_add(&nd->tdev->engines[0], TERN_STATS_ALL, values);

	*count = values[TERN_STAT_ETH_RX_NO_BUFFER];
	return err;
}

static void tern_rx_update_missed(struct tern_netdev *nd)
{
	u64 count;

	if (tern_rx_query_missed(nd, &count))
		return;
	atomic64_add(count - nd->card_missed, &nd->rx_missed);
	nd->card_missed = count;
}

static void tern_rx_missed_work(struct work_struct *work)
{
	tern_rx_update_missed(container_of(to_delayed_work(work), struct tern_netdev,
					   missed_work));
}

void tern_rx_init_missed(struct tern_netdev *nd)
{
	INIT_DELAYED_WORK(&nd->missed_work, tern_rx_missed_work);
}

/*
 * Reads the card's counter, so that frames dropped while the interface was down do not count, nor
 * those from before a reset of the card, which clears the counter.
 */
int tern_rx_open_missed(struct tern_netdev *nd)
{
	return tern_rx_query_missed(nd, &nd->card_missed);
}

/* The queues are closed. */
void tern_rx_close_missed(struct tern_netdev *nd)
{
	cancel_delayed_work_sync(&nd->missed_work);
	tern_rx_update_missed(nd);
}

/* Schedules a read of the card's counter. May be called in any context. */
void tern_rx_count_missed(struct tern_netdev *nd)
{
	schedule_delayed_work(&nd->missed_work, TERN_MISSED_PERIOD);
}

/* ---- open and close ----------------------------------------------------------------- */

static struct page_pool *tern_rx_create_pool(struct tern_eth_queue *q)
{
	struct device *dev = &q->nd->tdev->pdev->dev;
	const struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.pool_size = (q->rx.mask + 1) * q->rx.npages,
		.nid = dev_to_node(dev),
		.dev = dev,
		.dma_dir = DMA_FROM_DEVICE,
		.max_len = PAGE_SIZE,
	};

	return page_pool_create(&params);
}

static void tern_rx_completed(struct tern_cq_core *core)
{
	napi_schedule(&container_of(core, struct tern_eth_queue, rx.cq_core)->napi);
}

static void tern_rx_failed(struct tern_cq_core *core)
{
	tern_eth_fail(container_of(core, struct tern_eth_queue, rx.cq_core));
}

int tern_rx_open(struct tern_eth_queue *q)
{
	struct tern_netdev *nd = q->nd;
	u8 log_size = nd->settings.rx_log_size;
	struct tern_rx *rx = &q->rx;
	int err;

	*rx = (struct tern_rx) {
		.mask = (1U << log_size) - 1,
		.npages = tern_rx_pages_for(nd->ndev->mtu),
		.cq_core = {
			.eq = tern_eq_of_comp_vector(&nd->tdev->engines[0], q->index),
			.completed = tern_rx_completed,
			.failed = tern_rx_failed,
		},
	};
	rx->slots = kvcalloc(rx->mask + 1, sizeof(*rx->slots), GFP_KERNEL);
	if (!rx->slots)
		return -ENOMEM;

	rx->pool = tern_rx_create_pool(q);
	if (IS_ERR(rx->pool)) {
		err = PTR_ERR(rx->pool);
		goto err_slots;
	}
	err = tern_cq_core_create_ring(nd->tdev, &rx->cq_core, &rx->cq, log_size);
	if (err)
		goto err_pool;
	return 0;

err_pool:
	page_pool_destroy(rx->pool);
err_slots:
	kvfree(rx->slots);
	return err;
}

void tern_rx_drain(struct tern_eth_queue *q)
{
	struct tern_rx *rx = &q->rx;
	u32 slot, i;

	for (slot = 0; slot <= rx->mask; slot++) {
		for (i = 0; i < rx->npages; i++) {
			if (rx->slots[slot].pages[i])
				page_pool_put_full_page(rx->pool, rx->slots[slot].pages[i], false);
		}
	}
}

void tern_rx_close(struct tern_eth_queue *q)
{
	struct tern_rx *rx = &q->rx;

	tern_cq_core_destroy_ring(q->nd->tdev, &rx->cq_core, &rx->cq);
	page_pool_destroy(rx->pool);
	kvfree(rx->slots);
}
