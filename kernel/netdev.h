/* SPDX-License-Identifier: GPL-2.0 */
/* The Ethernet function: a net_device over a QP of type ETH. */
#ifndef TERN_NETDEV_H
#define TERN_NETDEV_H

#include <linux/netdevice.h>

#include "kqueue.h"

struct page_pool;

#define TERN_MAX_MTU		9000
#define TERN_RX_MAX_PAGES	4	/* of a frame of that MTU */

/* What a send WQE that begins at this block of the SQ holds. */
struct tern_tx_slot {
	struct sk_buff *skb;
	u16 blocks;
	u16 segs;
};

struct tern_tx {
	struct tern_cq_core cq_core;
	struct tern_kcq cq;
	struct tern_tx_slot *slots;	/* by block */
	u32 mask;
	u32 max_segs;
	u32 last;		/* where the WQE written last begins; of the sender */
	u32 pi;			/* written, in part published; of the sender */
	u32 ci;			/* completed; of NAPI */
};

/* The pages of a receive WQE. */
struct tern_rx_slot {
	struct page *pages[TERN_RX_MAX_PAGES];
};

struct tern_rx {
	struct tern_cq_core cq_core;
	struct tern_kcq cq;
	struct tern_rx_slot *slots;
	struct page_pool *pool;
	u32 mask;
	u32 npages;		/* of each WQE */
	u32 pi;			/* filled and published */
	u32 ci;			/* completed */
	bool starved;		/* out of memory with the ring less than half full */
};

/* What exists while the interface is up. */
struct tern_eth {
	struct tern_qp_core qp_core;
	struct tern_kqp qp;
	struct tern_tx tx;
	struct tern_rx rx;
};

struct tern_netdev {
	struct tern_dev *tdev;
	struct net_device *ndev;
	struct napi_struct napi;
	struct work_struct rx_mode_work;
	struct work_struct restart_work;
	bool open;		/* eth exists; under the RTNL */
	struct tern_eth eth;
};

/* netdev.c */
int tern_netdev_register(struct tern_dev *tdev);
void tern_netdev_unregister(struct tern_dev *tdev);
void tern_netdev_update_link(struct tern_dev *tdev);
void tern_netdev_kick(struct tern_dev *tdev);
void tern_netdev_restart(struct tern_netdev *nd);

/* eth.c */
int tern_eth_open(struct tern_netdev *nd);
void tern_eth_close(struct tern_netdev *nd);
netdev_tx_t tern_eth_xmit(struct sk_buff *skb, struct net_device *ndev);
int tern_eth_poll(struct napi_struct *napi, int budget);

/* ethtool.c */
extern const struct ethtool_ops tern_ethtool_ops;

#endif
