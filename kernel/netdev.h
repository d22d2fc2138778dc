/* SPDX-License-Identifier: GPL-2.0 */
/* The Ethernet function: a net_device over QPs of type ETH, one for each of its queue pairs. */
#ifndef TERN_NETDEV_H
#define TERN_NETDEV_H

#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/u64_stats_sync.h>
#include <linux/workqueue.h>

#include "cmd.h"
#include "object.h"
#include "tern.h"

struct page_pool;

#define TERN_MAX_MTU		9000
#define TERN_RX_MAX_PAGES	4	/* of a frame of that MTU */
#define TERN_RSS_ENTRIES	BIT(TERN_MAX_LOG_WQ_TABLE)

#define TERN_TX_LOG_BLOCKS	10
#define TERN_RX_LOG_SIZE	9
#define TERN_RING_MIN_LOG	6	/* holds send WQEs of the largest size */
#define TERN_RING_MAX_LOG	12

#define TERN_TX_BLOCK_SEGS	(TERN_SQ_BLOCK / TERN_SEG_SIZE)

/* The memory of a data segment. */
struct tern_tx_mapping {
	dma_addr_t dma;
	u32 length;
};

/* The frame of the send WQE that begins at this block of the SQ. */
struct tern_tx_slot {
	struct sk_buff *skb;
	u16 blocks;
	u16 segs;
};

struct tern_tx {
	struct tern_cq_core cq_core;
	struct tern_ring_cq cq;
	struct tern_tx_slot *slots;	/* by block */
	struct tern_tx_mapping *mappings;	/* by segment of the ring */
	u32 mask;
	u32 max_segs;
	u32 last;		/* sender: first block of the last WQE */
	u32 pi;			/* sender: blocks written */
	u32 published;		/* sender: blocks that the card may send */
	u32 ci;			/* NAPI: blocks completed */
	u32 released;		/* NAPI: blocks that the sender may write again */
};

/* The pages of a receive WQE. */
struct tern_rx_slot {
	struct page *pages[TERN_RX_MAX_PAGES];
};

struct tern_rx {
	struct tern_cq_core cq_core;
	struct tern_ring_cq cq;
	struct tern_rx_slot *slots;
	struct page_pool *pool;
	u32 mask;
	u32 npages;		/* pages per WQE */
	u32 pi;			/* filled and published */
	u32 ci;			/* completed */
};

/* Counts of one direction of a queue pair. They survive new rings. Written by NAPI. */
struct tern_queue_stats {
	struct u64_stats_sync sync;
	u64_stats_t frames;
	u64_stats_t bytes;
	u64_stats_t errors;
	u64_stats_t multicasts;	/* received ones */
};

/* A queue pair: an ETH QP, its two CQs and their NAPI context. */
struct tern_eth_queue {
	struct tern_netdev *nd;
	u32 index;
	struct napi_struct napi;
	bool has_xps;		/* the CPUs that send through it have been chosen */
	struct tern_queue_stats tx_stats;
	struct tern_queue_stats rx_stats;
	/* The restart after an error. All fields but failed are written under the RTNL. */
	bool failed;		/* waits for its restart; set from any context */
	struct delayed_work restart_work;
	unsigned long restarted;	/* jiffies of the last restart */
	unsigned long backoff;		/* jiffies until the next one */
	u64 restarts;
	bool reported;		/* the health reporter knows that the last restart failed */
	/* The rest is valid while this is set, which takes the RTNL and the lock of the transmit
	 * queue.
	 */
	bool open;
	struct tern_qp_core qp_core;
	struct tern_ring_qp qp;
	struct tern_tx tx;
	struct tern_rx rx;
};

/* An armed CQ raises its event after so many completions or so long after the first. */
struct tern_moderation {
	u16 frames;
	u16 usecs;		/* 0: at once */
};

/* Settings that need new rings. */
struct tern_eth_settings {
	u32 queues;
	u8 tx_log_size;		/* 64-byte blocks */
	u8 rx_log_size;
};

struct tern_netdev {
	struct tern_dev *tdev;
	struct net_device *ndev;
	struct work_struct rx_mode_work;
	struct delayed_work missed_work;	/* while open */
	atomic64_t rx_missed;	/* frames that the card has dropped for want of a buffer */
	spinlock_t link_lock;	/* held from reading the card's link to setting the carrier */
	/* the RTNL protects the rest */
	bool open;		/* the queues are open, or wait for their restart */
	u64 card_missed;	/* what the card has counted when it was last asked */
	struct tern_eth_settings settings;
	struct tern_moderation tx_moderation;
	struct tern_moderation rx_moderation;
	u8 rss_key[TERN_HASH_KEY_SIZE];
	u8 rss_table[TERN_RSS_ENTRIES];	/* indices of queues */
	u32 max_queues;
	struct tern_eth_queue queues[];
};

/* netdev.c */
int tern_netdev_register(struct tern_dev *tdev);
void tern_netdev_unregister(struct tern_dev *tdev);
void tern_netdev_detach(struct tern_dev *tdev);
int tern_netdev_attach(struct tern_dev *tdev);
void tern_netdev_update_link(struct tern_dev *tdev);
void tern_netdev_kick(struct tern_dev *tdev);
int tern_netdev_apply(struct tern_netdev *nd, const struct tern_eth_settings *settings);

/* eth_queue.c; all but the first two under the RTNL */
void tern_eth_init_queue(struct tern_netdev *nd, u32 index);
void tern_eth_fail(struct tern_eth_queue *q);
int tern_eth_open(struct tern_netdev *nd);
void tern_eth_close(struct tern_netdev *nd);
int tern_eth_set_rss(struct tern_netdev *nd);
int tern_eth_moderate(struct tern_netdev *nd);
int tern_eth_break(struct tern_netdev *nd);

/* eth_tx.c */
netdev_tx_t tern_eth_xmit(struct sk_buff *skb, struct net_device *ndev);
netdev_features_t tern_features_check(struct sk_buff *skb, struct net_device *ndev,
				      netdev_features_t features);
void tern_tx_clean(struct tern_eth_queue *q, int budget);
int tern_tx_open(struct tern_eth_queue *q);
void tern_tx_close(struct tern_eth_queue *q);
void tern_tx_drain(struct tern_eth_queue *q);

/* eth_rx.c */
int tern_rx_clean(struct tern_eth_queue *q, int budget);
void tern_rx_refill(struct tern_eth_queue *q);
int tern_rx_open(struct tern_eth_queue *q);
void tern_rx_close(struct tern_eth_queue *q);
void tern_rx_drain(struct tern_eth_queue *q);
void tern_rx_init_missed(struct tern_netdev *nd);
int tern_rx_open_missed(struct tern_netdev *nd);
void tern_rx_close_missed(struct tern_netdev *nd);
void tern_rx_count_missed(struct tern_netdev *nd);

/* ethtool.c */
extern const struct ethtool_ops tern_ethtool_ops;

static inline struct netdev_queue *tern_txq(const struct tern_eth_queue *q)
{
	return netdev_get_tx_queue(q->nd->ndev, q->index);
}

static inline void tern_queue_stats_add(struct tern_queue_stats *stats, u32 frames, u32 bytes)
{
	u64_stats_update_begin(&stats->sync);
	u64_stats_add(&stats->frames, frames);
	u64_stats_add(&stats->bytes, bytes);
	u64_stats_update_end(&stats->sync);
}

static inline void tern_queue_stats_error(struct tern_queue_stats *stats)
{
	u64_stats_update_begin(&stats->sync);
	u64_stats_inc(&stats->errors);
	u64_stats_update_end(&stats->sync);
}

static inline void tern_queue_stats_multicast(struct tern_queue_stats *stats)
{
	u64_stats_update_begin(&stats->sync);
	u64_stats_inc(&stats->multicasts);
	u64_stats_update_end(&stats->sync);
}

static inline u64 tern_queue_stats_multicasts(const struct tern_queue_stats *stats)
{
	unsigned int start;
	u64 count;

	do {
		start = u64_stats_fetch_begin(&stats->sync);
		count = u64_stats_read(&stats->multicasts);
	} while (u64_stats_fetch_retry(&stats->sync, start));
	return count;
}

/* Reads a consistent set of frames, bytes and errors. */
static inline void tern_queue_stats_read(const struct tern_queue_stats *stats, u64 *data)
{
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&stats->sync);
		data[0] = u64_stats_read(&stats->frames);
		data[1] = u64_stats_read(&stats->bytes);
		data[2] = u64_stats_read(&stats->errors);
	} while (u64_stats_fetch_retry(&stats->sync, start));
}

#endif
