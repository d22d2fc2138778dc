// SPDX-License-Identifier: GPL-2.0
/* The net_device: registration, settings and link. Its queue pairs are in eth_queue.c. */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>

#include "eq.h"
#include "hw.h"
#include "netdev.h"
#include "port.h"

/* The RTNL is held. */
static int tern_open(struct net_device *ndev)
{
	struct tern_netdev *nd = netdev_priv(ndev);
	int err;

	err = tern_eth_open(nd);
	if (!err)
		tern_netdev_update_link(nd->tdev);
	return err;
}

static int tern_stop(struct net_device *ndev)
{
	struct tern_netdev *nd = netdev_priv(ndev);

	tern_eth_close(nd);
	tern_port_changed(nd->tdev);
	return 0;
}

/* Fills the RSS table with the queues in turn. */
static void tern_netdev_spread_evenly(struct tern_netdev *nd)
{
	u32 i;

	for (i = 0; i < TERN_RSS_ENTRIES; i++)
		nd->rss_table[i] = ethtool_rxfh_indir_default(i, nd->settings.queues);
}

/*
 * Closes an interface whose queues do not open. If the card has failed, the interface stays up
 * without queues, and tern_netdev_attach() opens them after the card's recovery.
 */
static void tern_netdev_give_up(struct tern_netdev *nd)
{
	if (!tern_is_dead(nd->tdev))
		dev_close(nd->ndev);
}

/* The RTNL is held. On error restores the old settings; if that fails, gives up the interface. */
int tern_netdev_apply(struct tern_netdev *nd, const struct tern_eth_settings *settings)
{
	struct tern_eth_settings old = nd->settings;
	u8 old_table[TERN_RSS_ENTRIES];
	int err;

	tern_eth_close(nd);
	memcpy(old_table, nd->rss_table, sizeof(old_table));
	nd->settings = *settings;
	if (!netif_is_rxfh_configured(nd->ndev))
		tern_netdev_spread_evenly(nd);
	if (!netif_running(nd->ndev))
		return 0;
	err = tern_eth_open(nd);
	if (!err)
		return 0;

	nd->settings = old;
	memcpy(nd->rss_table, old_table, sizeof(old_table));
	if (tern_eth_open(nd))
		tern_netdev_give_up(nd);
	return err;
}

/* The queues are closed. Opens those of a running interface for @mtu. */
static int tern_use_mtu(struct tern_netdev *nd, int mtu)
{
	int err = tern_cmd_set_mtu(nd->tdev, mtu);

	if (err)
		return err;
	WRITE_ONCE(nd->ndev->mtu, mtu);
	return netif_running(nd->ndev) ? tern_eth_open(nd) : 0;
}

/*
 * The size of receive buffers depends on the MTU. Frames of the old size put a queue in error if
 * the card has a smaller MTU already. So the queues are closed meanwhile.
 */
static int tern_change_mtu(struct net_device *ndev, int mtu)
{
	struct tern_netdev *nd = netdev_priv(ndev);
	int old = ndev->mtu;
	int err;

	tern_eth_close(nd);
	err = tern_use_mtu(nd, mtu);
	if (!err)
		return 0;

	netdev_err(ndev, "MTU %d: %d\n", mtu, err);
	if (tern_use_mtu(nd, old)) {
		WRITE_ONCE(ndev->mtu, old);
		tern_netdev_give_up(nd);
	}
	return err;
}

static int tern_set_mac(struct net_device *ndev, void *addr)
{
	struct tern_netdev *nd = netdev_priv(ndev);
	struct sockaddr *sa = addr;
	int err;

	err = eth_prepare_mac_addr_change(ndev, addr);
	if (err)
		return err;
	err = tern_cmd_set_mac(nd->tdev, sa->sa_data);
	if (err) {
		tern_cmd_set_mac(nd->tdev, ndev->dev_addr); /* some engines may have the new one */
		return err;
	}
	eth_commit_mac_addr_change(ndev, addr);
	return 0;
}

/* The card cannot filter multicast addresses: it passes all or none. */
static void tern_rx_mode_work(struct work_struct *work)
{
	struct tern_netdev *nd = container_of(work, struct tern_netdev, rx_mode_work);
	struct net_device *ndev = nd->ndev;
	u32 mode = 0;

	rtnl_lock();
	if (!netif_device_present(ndev))
		goto out;
	netif_addr_lock_bh(ndev);
	if (ndev->flags & IFF_PROMISC)
		mode |= TERN_ETH_PROMISC;
	if (ndev->flags & IFF_ALLMULTI || !netdev_mc_empty(ndev))
		mode |= TERN_ETH_ALLMULTI;
	netif_addr_unlock_bh(ndev);

	tern_cmd_set_rx_mode(nd->tdev, mode);
out:
	rtnl_unlock();
}

/* Called with a spinlock held, but the command sleeps. */
static void tern_set_rx_mode(struct net_device *ndev)
{
	struct tern_netdev *nd = netdev_priv(ndev);

	schedule_work(&nd->rx_mode_work);
}

static void tern_tx_timeout(struct net_device *ndev, unsigned int txqueue)
{
	struct tern_netdev *nd = netdev_priv(ndev);

	tern_eth_fail(&nd->queues[txqueue]);
}

static void tern_get_stats64(struct net_device *ndev, struct rtnl_link_stats64 *stats)
{
	struct tern_netdev *nd = netdev_priv(ndev);
	u64 data[3];
	u32 i;

	for (i = 0; i < nd->max_queues; i++) {
		tern_queue_stats_read(&nd->queues[i].tx_stats, data);
		stats->tx_packets += data[0];
		stats->tx_bytes += data[1];
		stats->tx_errors += data[2];
		tern_queue_stats_read(&nd->queues[i].rx_stats, data);
		stats->rx_packets += data[0];
		stats->rx_bytes += data[1];
		stats->rx_errors += data[2];
		stats->multicast += tern_queue_stats_multicasts(&nd->queues[i].rx_stats);
	}
	stats->rx_missed_errors = atomic64_read(&nd->rx_missed);
}

static const struct net_device_ops tern_netdev_ops = {
	.ndo_open = tern_open,
	.ndo_stop = tern_stop,
	.ndo_start_xmit = tern_eth_xmit,
	.ndo_features_check = tern_features_check,
	.ndo_tx_timeout = tern_tx_timeout,
	.ndo_set_rx_mode = tern_set_rx_mode,
	.ndo_set_mac_address = tern_set_mac,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = tern_change_mtu,
	.ndo_get_stats64 = tern_get_stats64,
};

/* Sets the link of the net_device and the RDMA port from the card's. From any context. */
void tern_netdev_update_link(struct tern_dev *tdev)
{
	struct net_device *ndev = READ_ONCE(tdev->netdev);
	struct tern_netdev *nd;
	unsigned long flags;

	if (!ndev)
		return;
	nd = netdev_priv(ndev);
	spin_lock_irqsave(&nd->link_lock, flags);
	if (netif_device_present(ndev) && !tern_is_dead(tdev) && tern_hw_link_up(tdev))
		netif_carrier_on(ndev);
	else
		netif_carrier_off(ndev);
	spin_unlock_irqrestore(&nd->link_lock, flags);
	tern_port_changed(tdev);
}

/*
 * Periodically: polls the queues that are open, in case an event was lost, and so refills receive
 * rings for which there was no memory.
 */
void tern_netdev_kick(struct tern_dev *tdev)
{
	struct tern_netdev *nd = netdev_priv(tdev->netdev);
	u32 i;

	local_bh_disable();
	for (i = 0; i < nd->max_queues; i++)
		napi_schedule(&nd->queues[i].napi);
	local_bh_enable();
}

static void tern_netdev_set_features(struct tern_netdev *nd)
{
	struct net_device *ndev = nd->ndev;
	u32 caps = nd->tdev->caps;

	ndev->hw_features = NETIF_F_SG;
	if (caps & TERN_CAP_ETH_OFFLOAD)
		ndev->hw_features |= NETIF_F_HW_CSUM | NETIF_F_TSO | NETIF_F_TSO6 |
				     NETIF_F_TSO_ECN;
	ndev->vlan_features = ndev->hw_features | NETIF_F_HIGHDMA;
	if (caps & TERN_CAP_ETH_OFFLOAD)
		ndev->hw_features |= NETIF_F_RXCSUM;
	if (caps & TERN_CAP_ETH_QUEUES)
		ndev->hw_features |= NETIF_F_RXHASH;
	ndev->features = ndev->hw_features | NETIF_F_HIGHDMA;
}

static void tern_netdev_set_defaults(struct tern_netdev *nd)
{
	const struct tern_device_attr *attr = &nd->tdev->attr;

	nd->settings = (struct tern_eth_settings) {
		.queues = min_t(u32, nd->max_queues, netif_get_num_default_rss_queues()),
		.tx_log_size = min3((u8)TERN_TX_LOG_BLOCKS, attr->max_sq_log_size,
				    attr->max_cq_log_size),
		.rx_log_size = min3((u8)TERN_RX_LOG_SIZE, attr->max_rq_log_size,
				    attr->max_cq_log_size),
	};
	netdev_rss_key_fill(nd->rss_key, sizeof(nd->rss_key));
	tern_netdev_spread_evenly(nd);
}

static void tern_netdev_setup(struct tern_netdev *nd)
{
	struct net_device *ndev = nd->ndev;
	struct tern_dev *tdev = nd->tdev;
	u32 i;

	SET_NETDEV_DEV(ndev, &tdev->pdev->dev);
	ndev->netdev_ops = &tern_netdev_ops;
	ndev->ethtool_ops = &tern_ethtool_ops;
	ndev->min_mtu = ETH_MIN_MTU;
	ndev->max_mtu = min_t(u32, tdev->attr.max_mtu, TERN_MAX_MTU);
	tern_netdev_set_features(nd);
	tern_netdev_set_defaults(nd);
	ndev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	/* tern_tx_map() may have to linearize a frame, which must not be shared then. */
	if (tdev->attr.max_send_sge <= MAX_SKB_FRAGS)
		ndev->priv_flags &= ~IFF_TX_SKB_SHARING;
	/* More than a command may take (aq.c), as a queue that restarts waits for some. */
	ndev->watchdog_timeo = 30 * HZ;
	eth_hw_addr_set(ndev, tdev->mac);

	spin_lock_init(&nd->link_lock);
	INIT_WORK(&nd->rx_mode_work, tern_rx_mode_work);
	tern_rx_init_missed(nd);
	for (i = 0; i < nd->max_queues; i++)
		tern_eth_init_queue(nd, i);
	netif_carrier_off(ndev);
}

/* One per vector of completion events. */
static u32 tern_netdev_max_queues(struct tern_dev *tdev)
{
	if (!(tdev->caps & TERN_CAP_ETH_QUEUES))
		return 1;
	return min_t(u32, tern_eqs_comp_vectors(tdev), TERN_MAX_ETH_QPS);
}

int tern_netdev_register(struct tern_dev *tdev)
{
	u32 queues = tern_netdev_max_queues(tdev);
	struct tern_netdev *nd;
	struct net_device *ndev;
	int err;

	ndev = alloc_etherdev_mqs(struct_size(nd, queues, queues), queues, queues);
	if (!ndev)
		return -ENOMEM;
	nd = netdev_priv(ndev);
	nd->tdev = tdev;
	nd->ndev = ndev;
	nd->max_queues = queues;
	tern_netdev_setup(nd);

	err = tern_cmd_set_mtu(tdev, ndev->mtu);
	if (err)
		goto err_free;
	err = register_netdev(ndev);
	if (err)
		goto err_free;

	WRITE_ONCE(tdev->netdev, ndev);
	tern_netdev_update_link(tdev);
	return 0;

err_free:
	free_netdev(ndev);
	return err;
}

/* The card is down. */
void tern_netdev_unregister(struct tern_dev *tdev)
{
	struct net_device *ndev = tdev->netdev;
	struct tern_netdev *nd;
	u32 i;

	if (!ndev)
		return;
	nd = netdev_priv(ndev);
	/* tern_tx_diagnose() reads the pointer under the RTNL. */
	rtnl_lock();
	unregister_netdevice(ndev);
	WRITE_ONCE(tdev->netdev, NULL);
	rtnl_unlock();
	cancel_work_sync(&nd->rx_mode_work);
	for (i = 0; i < nd->max_queues; i++)
		cancel_delayed_work_sync(&nd->queues[i].restart_work);
	free_netdev(ndev);
}

/* ---- while the card is down ------------------------------------------------------------ */

/*
 * Closes the queues and makes the net_device absent. Then neither the stack nor work of its own
 * uses the card. The health check, which calls tern_netdev_kick(), is stopped.
 */
void tern_netdev_detach(struct tern_dev *tdev)
{
	struct net_device *ndev = tdev->netdev;

	rtnl_lock();
	netif_device_detach(ndev);
	tern_eth_close(netdev_priv(ndev));
	rtnl_unlock();
	tern_netdev_update_link(tdev);
}

/* Gives a card that was reset the settings of the net_device, and queues if that is up. */
static int tern_netdev_restore(struct tern_netdev *nd)
{
	struct net_device *ndev = nd->ndev;
	struct tern_dev *tdev = nd->tdev;
	int err;

	err = tern_cmd_set_mtu(tdev, ndev->mtu);
	if (err)
		return err;
	if (!ether_addr_equal(ndev->dev_addr, tdev->mac)) {
		err = tern_cmd_set_mac(tdev, ndev->dev_addr);
		if (err)
			return err;
	}
	return netif_running(ndev) ? tern_eth_open(nd) : 0;
}

/* Ends tern_netdev_detach(). On failure the net_device stays absent. */
int tern_netdev_attach(struct tern_dev *tdev)
{
	struct net_device *ndev = tdev->netdev;
	struct tern_netdev *nd = netdev_priv(ndev);
	int err;

	rtnl_lock();
	err = tern_netdev_restore(nd);
	if (!err) {
		netif_device_attach(ndev);
		schedule_work(&nd->rx_mode_work);
	}
	rtnl_unlock();
	if (!err)
		tern_netdev_update_link(tdev);
	return err;
}
