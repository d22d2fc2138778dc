// SPDX-License-Identifier: GPL-2.0
/* The net_device: its life, its settings and its link. The data path is in eth.c. */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>

#include "hw.h"
#include "ib.h"
#include "netdev.h"

/* Brings the rings up or down with the interface; both under the RTNL. */
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
	tern_ib_update_port(nd->tdev);
	return 0;
}

/* The receive buffers are cut for the MTU, so a running interface takes new rings. */
static int tern_change_mtu(struct net_device *ndev, int mtu)
{
	struct tern_netdev *nd = netdev_priv(ndev);
	int old = ndev->mtu;
	int err;

	err = tern_cmd_set_mtu(nd->tdev, mtu);
	if (err)
		return err;
	WRITE_ONCE(ndev->mtu, mtu);
	if (!netif_running(ndev))
		return 0;

	tern_eth_close(nd);
	err = tern_eth_open(nd);
	if (!err)
		return 0;

	netdev_err(ndev, "no rings for MTU %d: %d\n", mtu, err);
	WRITE_ONCE(ndev->mtu, old);
	tern_cmd_set_mtu(nd->tdev, old);
	if (tern_eth_open(nd))
		dev_close(ndev);
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
	if (err)
		return err;
	eth_commit_mac_addr_change(ndev, addr);
	return 0;
}

/* The card has no filter of multicast addresses: it passes all of them or none. */
static void tern_rx_mode_work(struct work_struct *work)
{
	struct tern_netdev *nd = container_of(work, struct tern_netdev, rx_mode_work);
	struct net_device *ndev = nd->ndev;
	u32 mode = 0;

	netif_addr_lock_bh(ndev);
	if (ndev->flags & IFF_PROMISC)
		mode |= TERN_ETH_PROMISC;
	if (ndev->flags & IFF_ALLMULTI || !netdev_mc_empty(ndev))
		mode |= TERN_ETH_ALLMULTI;
	netif_addr_unlock_bh(ndev);

	tern_cmd_set_rx_mode(nd->tdev, mode);
}

/* Called with a spinlock held, but the command sleeps. */
static void tern_set_rx_mode(struct net_device *ndev)
{
	struct tern_netdev *nd = netdev_priv(ndev);

	schedule_work(&nd->rx_mode_work);
}

/* The rings stopped working (an error of the QP, a lost doorbell): begin with new ones. */
static void tern_restart_work(struct work_struct *work)
{
	struct tern_netdev *nd = container_of(work, struct tern_netdev, restart_work);
	struct net_device *ndev = nd->ndev;

	rtnl_lock();
	if (netif_running(ndev) && !tern_is_dead(nd->tdev)) {
		tern_eth_close(nd);
		if (tern_eth_open(nd))
			dev_close(ndev);
	}
	rtnl_unlock();
}

void tern_netdev_restart(struct tern_netdev *nd)
{
	schedule_work(&nd->restart_work);
}

static void tern_tx_timeout(struct net_device *ndev, unsigned int txqueue)
{
	tern_netdev_restart(netdev_priv(ndev));
}

static const struct net_device_ops tern_netdev_ops = {
	.ndo_open = tern_open,
	.ndo_stop = tern_stop,
	.ndo_start_xmit = tern_eth_xmit,
	.ndo_tx_timeout = tern_tx_timeout,
	.ndo_set_rx_mode = tern_set_rx_mode,
	.ndo_set_mac_address = tern_set_mac,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = tern_change_mtu,
	.ndo_get_stats64 = dev_get_tstats64,
};

/* Lets the link of the net_device and the RDMA port follow that of the card. From any context. */
void tern_netdev_update_link(struct tern_dev *tdev)
{
	struct net_device *ndev = READ_ONCE(tdev->netdev);

	if (!ndev)
		return;
	if (!tern_is_dead(tdev) && tern_hw_link_up(tdev))
		netif_carrier_on(ndev);
	else
		netif_carrier_off(ndev);
	tern_ib_update_port(tdev);
}

/* Every now and then: tries again to fill a receive ring for which there was no memory. */
void tern_netdev_kick(struct tern_dev *tdev)
{
	struct tern_netdev *nd = netdev_priv(tdev->netdev);

	if (!READ_ONCE(nd->eth.rx.starved))
		return;
	local_bh_disable();
	napi_schedule(&nd->napi);
	local_bh_enable();
}

static void tern_netdev_setup(struct tern_netdev *nd)
{
	struct net_device *ndev = nd->ndev;
	struct tern_dev *tdev = nd->tdev;

	SET_NETDEV_DEV(ndev, &tdev->pdev->dev);
	ndev->netdev_ops = &tern_netdev_ops;
	ndev->ethtool_ops = &tern_ethtool_ops;
	ndev->min_mtu = ETH_MIN_MTU;
	ndev->max_mtu = min_t(u32, tdev->attr.max_mtu, TERN_MAX_MTU);
	ndev->hw_features = NETIF_F_SG;
	ndev->features = NETIF_F_SG | NETIF_F_HIGHDMA;
	ndev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	ndev->watchdog_timeo = 10 * HZ;
	eth_hw_addr_set(ndev, tdev->mac);

	INIT_WORK(&nd->rx_mode_work, tern_rx_mode_work);
	INIT_WORK(&nd->restart_work, tern_restart_work);
	netif_napi_add(ndev, &nd->napi, tern_eth_poll);
	netif_carrier_off(ndev);
}

int tern_netdev_register(struct tern_dev *tdev)
{
	struct tern_netdev *nd;
	struct net_device *ndev;
	int err;

	ndev = alloc_etherdev(sizeof(*nd));
	if (!ndev)
		return -ENOMEM;
	nd = netdev_priv(ndev);
	nd->tdev = tdev;
	nd->ndev = ndev;
	tern_netdev_setup(nd);

	err = -ENOMEM;
	ndev->tstats = netdev_alloc_pcpu_stats(struct pcpu_sw_netstats);
	if (!ndev->tstats)
		goto err_free;

	err = tern_cmd_set_mtu(tdev, ndev->mtu);
	if (err)
		goto err_stats;
	err = register_netdev(ndev);
	if (err)
		goto err_stats;

	WRITE_ONCE(tdev->netdev, ndev);
	tern_netdev_update_link(tdev);
	return 0;

err_stats:
	free_percpu(ndev->tstats);
err_free:
	free_netdev(ndev);
	return err;
}

/* The health check, which kicks the net_device, has been stopped. */
void tern_netdev_unregister(struct tern_dev *tdev)
{
	struct net_device *ndev = tdev->netdev;
	struct tern_netdev *nd = netdev_priv(ndev);

	unregister_netdev(ndev);
	WRITE_ONCE(tdev->netdev, NULL);
	tern_eqs_synchronize(tdev, NULL);
	cancel_work_sync(&nd->rx_mode_work);
	cancel_work_sync(&nd->restart_work);
	free_percpu(ndev->tstats);
	free_netdev(ndev);
}
