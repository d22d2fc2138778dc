// SPDX-License-Identifier: GPL-2.0
/*
 * Starts the card and all that is built on it, and takes it down.
 *
 * A card goes down for a suspend, for a reset, or to recover from a failure. Meanwhile the
 * net_device stays registered but is absent, so it keeps its name and settings. The ib_device is
 * unregistered, since all of its objects are lost, and a new one is registered afterwards.
 */
#include <linux/rtnetlink.h>
#include <net/devlink.h>

#include "aq.h"
#include "eq.h"
#include "hw.h"
#include "ib.h"
#include "main.h"
#include "netdev.h"

/* Entries of any ring, as a power of two. */
#define TERN_MAX_LOG_SIZE	20
/* Commands encode a GID index in 8 bits. */
#define TERN_MAX_GIDS		256

/* Caps the limits of the card, so that no size that is computed from one overflows. */
static void tern_limit_attr(struct tern_device_attr *attr)
{
	attr->max_sq_log_size = min_t(u8, attr->max_sq_log_size, TERN_MAX_LOG_SIZE);
	attr->max_rq_log_size = min_t(u8, attr->max_rq_log_size, TERN_MAX_LOG_SIZE);
	attr->max_cq_log_size = min_t(u8, attr->max_cq_log_size, TERN_MAX_LOG_SIZE);
	attr->max_srq_log_size = min_t(u8, attr->max_srq_log_size, TERN_MAX_LOG_SIZE);
	attr->max_log_tags = min_t(u8, attr->max_log_tags, TERN_MAX_LOG_SIZE);
	attr->max_log_tag_ops = min_t(u8, attr->max_log_tag_ops, TERN_MAX_LOG_SIZE);
	attr->max_gids = min_t(u32, attr->max_gids, TERN_MAX_GIDS);
	attr->max_send_sge = min_t(u16, attr->max_send_sge, TERN_MAX_SEND_SGE);
	attr->max_recv_sge = min_t(u16, attr->max_recv_sge, TERN_MAX_RECV_SGE);
	attr->max_inline = min_t(u16, attr->max_inline, TERN_MAX_INLINE);
}

/* Whether the rings of the net_device can hold a frame, however it is scattered. */
static bool tern_attr_usable(const struct tern_device_attr *attr)
{
	u8 log_size = min3(attr->max_sq_log_size, attr->max_rq_log_size, attr->max_cq_log_size);

	return log_size >= TERN_RING_MIN_LOG && attr->max_send_sge &&
	       attr->max_recv_sge >= TERN_RX_MAX_PAGES;
}

/* ---- the card ------------------------------------------------------------------------- */

/* tern_dev_stop() also ends bus mastering. */
static void tern_stop_card(struct tern_dev *tdev)
{
	tern_dev_stop(tdev);
	tern_aqs_exit(tdev);
}

/*
 * Restores the configuration space first: a reset by others may have cleared it. In the saved
 * configuration, bus mastering is disabled. This function enables it only after the reset, because
 * the reset that stopped the card may not have reached it, and the driver has since freed the
 * memory that the card wrote to.
 */
static int tern_reset_card(struct tern_dev *tdev)
{
	int err;

	/* The PCI core restores a saved state only once, but the last attempt may have failed. */
	tdev->pdev->state_saved = true;
	pci_restore_state(tdev->pdev);
	err = tern_hw_reset(tdev);
	if (err)
		return err;
	pci_save_state(tdev->pdev);
	pci_set_master(tdev->pdev);
	return 0;
}

static int tern_start_card(struct tern_dev *tdev)
{
	int err;

	err = tern_reset_card(tdev);
	if (err)
		return err;
	err = tern_aqs_init(tdev);
	if (err)
		return err;
	WRITE_ONCE(tdev->failure, NULL);
	WRITE_ONCE(tdev->accusation, NULL);
	clear_bit(TERN_STATE_DEAD, &tdev->state); /* commands are possible from here on */
	err = tern_cmd_query_device(&tdev->engines[0], &tdev->attr);
	if (err)
		goto err_aq;
	tern_limit_attr(&tdev->attr);
	if (!tern_attr_usable(&tdev->attr)) {
		dev_err(&tdev->pdev->dev, "the card's queues are too small\n");
		err = -EOPNOTSUPP;
		goto err_aq;
	}
	return 0;

err_aq:
	tern_stop_card(tdev);
	return err;
}

/* ---- what the Ethernet half and the RDMA half share -------------------------------------- */

static int tern_base_up(struct tern_dev *tdev)
{
	int err;

	err = tern_start_card(tdev);
	if (err)
		return err;
	err = tern_eqs_init(tdev);
	if (err)
		goto err_card;
	err = tern_stats_init(tdev);
	if (err)
		goto err_eqs;
	err = tern_cmd_alloc_pd(&tdev->engines[0], TERN_DB_PAGE_KERNEL, &tdev->kernel_pdn);
	if (err)
		goto err_stats;
	return 0;

err_stats:
	tern_stats_exit(tdev);
err_eqs:
	tern_eqs_exit(tdev);
err_card:
	tern_stop_card(tdev);
	return err;
}

static void tern_base_down(struct tern_dev *tdev)
{
	tern_cmd_dealloc_pd(tdev, tdev->kernel_pdn);
	tern_stats_exit(tdev);
	tern_eqs_exit(tdev);
	tern_stop_card(tdev);
}

/* ---- up and down ---------------------------------------------------------------------- */

/* Registers the net_device, if there is none yet. On failure it may stay registered, absent. */
static int tern_up(struct tern_dev *tdev)
{
	int err;

	err = tern_base_up(tdev);
	if (err)
		return err;
	err = tdev->netdev ? tern_netdev_attach(tdev) : tern_netdev_register(tdev);
	if (err)
		goto err_base;
	err = tern_ib_register(tdev);
	if (err)
		goto err_netdev;

	tern_health_start(tdev);
	tern_debugfs_add(tdev);
	tdev->up = true;
	return 0;

err_netdev:
	tern_netdev_detach(tdev);
err_base:
	tern_base_down(tdev);
	return err;
}

static void tern_down(struct tern_dev *tdev)
{
	if (!tdev->up)
		return;
	tdev->up = false;
	tern_debugfs_remove(tdev);
	tern_health_stop(tdev);
	tern_ib_unregister(tdev);
	tern_netdev_detach(tdev);
	tern_base_down(tdev);
}

/* ---- for the PCI driver ------------------------------------------------------------------ */

int tern_add(struct tern_dev *tdev)
{
	int err;

	devl_lock(tdev->devlink);
	err = tern_up(tdev);
	devl_unlock(tdev->devlink);
	if (err)
		tern_netdev_unregister(tdev);
	return err;
}

/* A card that was pulled out is declared dead first, or each command would time out. */
void tern_del(struct tern_dev *tdev)
{
	devl_lock(tdev->devlink);
	tdev->held |= TERN_HELD_FOREVER;
	if (tdev->up && !pci_device_is_present(tdev->pdev))
		tern_dev_fail(tdev, "is gone");
	tern_down(tdev);
	devl_unlock(tdev->devlink);
	tern_netdev_unregister(tdev);
}

/* The system goes down, perhaps by kexec: only DMA has to stop. */
void tern_quiesce(struct tern_dev *tdev)
{
	devl_lock(tdev->devlink);
	tdev->held |= TERN_HELD_FOREVER;
	if (tdev->up) {
		tern_health_stop(tdev);
		rtnl_lock();
		netif_device_detach(tdev->netdev);
		rtnl_unlock();
		tern_dev_stop(tdev);
	}
	devl_unlock(tdev->devlink);
}

/* ---- while the card is away ----------------------------------------------------------------- */

/*
 * Takes the card down until tern_release() with the same @reason (TERN_HELD_*). If @why is not
 * NULL, first reports that the card has failed for it. The caller holds the devlink lock, also for
 * the next functions.
 *
 * Holds for different reasons may overlap: while Linux handles an error of PCI Express, it releases
 * the lock of the device between the calls of the driver, and somebody may reset the function.
 */
void tern_hold(struct tern_dev *tdev, u8 reason, const char *why)
{
	tdev->held |= reason;
	if (tdev->up && why)
		tern_dev_fail(tdev, why);
	tern_down(tdev);
}

/* Starts the card unless it works. */
static int tern_restart(struct tern_dev *tdev)
{
	if (tdev->up && !tern_is_dead(tdev))
		return 0;
	tern_down(tdev);
	return tern_up(tdev);
}

/*
 * Ends tern_hold(), and starts the card if nothing else holds it. Returns a negative errno if the
 * card does not start.
 *
 * Linux does not tell the driver when it gives up an error of PCI Express. So any release ends
 * TERN_HELD_ERROR, too. If Linux still handles the error, it may reset the started card once more.
 * The health check notices that.
 */
int tern_release(struct tern_dev *tdev, u8 reason)
{
	int err;

	tdev->held &= ~(reason | TERN_HELD_ERROR);
	if (tdev->held)
		return 0;
	/* Before the card starts: devlink ignores the report of a failure that it knows already. */
	tern_devlink_card_works(tdev);
	err = tern_restart(tdev);
	if (!err)
		return 0;
	dev_err(&tdev->pdev->dev, "the card does not come up again: %d\n", err);
	WRITE_ONCE(tdev->failure, tdev->failure ?: "does not come up again");
	tern_devlink_card_failed(tdev);
	return err;
}

/* Restarts a card that has failed. Does nothing if it works. */
int tern_recover(struct tern_dev *tdev)
{
	if (tdev->held)
		return -EBUSY;
	return tern_restart(tdev);
}
