/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The port, where the Ethernet half and the RDMA half of the driver meet. Neither half includes
 * another header of the other.
 *
 * The Ethernet half owns the net_device. It registers the net_device before the RDMA half
 * registers, and unregisters it after the RDMA half is gone.
 */
#ifndef TERN_PORT_H
#define TERN_PORT_H

#include <linux/netdevice.h>

#include "tern.h"

static inline struct net_device *tern_port_netdev(const struct tern_dev *tdev)
{
	return tdev->netdev;
}

static inline bool tern_port_is_up(const struct tern_dev *tdev)
{
	return !tern_is_dead(tdev) && netif_running(tdev->netdev) &&
	       netif_carrier_ok(tdev->netdev);
}

/* For the Ethernet half: tells the RDMA half that tern_port_is_up() may have changed. */
static inline void tern_port_changed(struct tern_dev *tdev)
{
	tdev->upcalls->port_changed(tdev);
}

#endif
