// SPDX-License-Identifier: GPL-2.0
/*
 * The end of the card's life, expected or not. A card that is gone, stopped or does
 * not answer is declared dead once: from then on it does no DMA, commands fail
 * at once, and taking objects down only frees memory.
 */
#include <linux/netdevice.h>

#include "hw.h"
#include "ib.h"
#include "netdev.h"

#define TERN_HEALTH_PERIOD	HZ

/* Whether the card was alive until now. */
static bool tern_stop_locked(struct tern_dev *tdev)
{
	if (tern_is_dead(tdev))
		return false;
	tern_hw_reset(tdev);
	/* Should the reset not have reached the card, then at least nothing gets past the bus. */
	pci_clear_master(tdev->pdev);
	tern_aqs_abort(tdev);
	return true;
}

/*
 * Stops the card. Commands under way end with -EIO only after the reset, so that nobody
 * frees memory which the card still writes to.
 */
void tern_dev_stop(struct tern_dev *tdev)
{
	mutex_lock(&tdev->stop_lock);
	tern_stop_locked(tdev);
	mutex_unlock(&tdev->stop_lock);
}

static void tern_flush_work(struct work_struct *work)
{
	tern_cqs_died(container_of(work, struct tern_dev, flush));
}

/*
 * Lets the kernel's users poll what a dead card has left to them. They may be about to post
 * when this is called, hence from a thread of its own.
 */
void tern_dev_flush(struct tern_dev *tdev)
{
	schedule_work(&tdev->flush);
}

/* As tern_dev_stop(), but nobody asked for it: tells the log and the users, once. */
void tern_dev_fail(struct tern_dev *tdev, const char *why)
{
	bool first;

	mutex_lock(&tdev->stop_lock);
	first = tern_stop_locked(tdev);
	mutex_unlock(&tdev->stop_lock);
	if (!first)
		return;

	dev_err(&tdev->pdev->dev, "the card %s\n", why);
	tern_netdev_update_link(tdev);
	tern_ib_device_fatal(tdev);
	tern_dev_flush(tdev);
}

/* Why the status of @engine is not that of a card at work, or NULL. */
static const char *tern_engine_complaint(const struct tern_engine *engine)
{
	u32 status = tern_reg_read(engine, TERN_REG_STATUS);

	if (status == TERN_REG_GONE)
		return "is gone";
	if (status & TERN_STATUS_FATAL) {
		dev_err(&engine->tdev->pdev->dev, "fatal error, reason %u\n",
			(status & TERN_STATUS_REASON_MASK) >> TERN_STATUS_REASON_SHIFT);
		return "has stopped";
	}
	if (!(status & TERN_STATUS_READY))
		return "was reset by others";
	return NULL;
}

/* The same of the first engine that gives reason to. One that fails takes all with it. */
static const char *tern_health_complaint(const struct tern_dev *tdev)
{
	const char *why = NULL;
	u32 i;

	for (i = 0; !why && i < tdev->num_engines; i++)
		why = tern_engine_complaint(&tdev->engines[i]);
	return why;
}

static void tern_health_work(struct work_struct *work)
{
	struct tern_dev *tdev = container_of(to_delayed_work(work), struct tern_dev, health);
	const char *why;

	if (tern_is_dead(tdev))
		return;
	why = tern_health_complaint(tdev);
	if (why) {
		tern_dev_fail(tdev, why);
		return;
	}
	tern_netdev_update_link(tdev); /* its event may have been lost */
	tern_netdev_kick(tdev);
	schedule_delayed_work(&tdev->health, TERN_HEALTH_PERIOD);
}

void tern_health_init(struct tern_dev *tdev)
{
	mutex_init(&tdev->stop_lock);
	INIT_DELAYED_WORK(&tdev->health, tern_health_work);
	INIT_WORK(&tdev->flush, tern_flush_work);
}

void tern_health_start(struct tern_dev *tdev)
{
	schedule_delayed_work(&tdev->health, TERN_HEALTH_PERIOD);
}

void tern_health_stop(struct tern_dev *tdev)
{
	cancel_delayed_work_sync(&tdev->health);
}

/* No object is left, and nobody can find the card dead any more. */
void tern_health_exit(struct tern_dev *tdev)
{
	cancel_work_sync(&tdev->flush);
}
