// SPDX-License-Identifier: GPL-2.0
/*
 * The periodic health check. It stops a card that is gone, has failed, was reset by others or does
 * not keep to its specification. In case an event was lost, it reads the link state, raises the
 * events of kernel users' CQs that have completions, and polls the Ethernet queues. Polling also
 * refills receive rings for which there was no memory.
 */
#include "aq.h"
#include "hw.h"
#include "main.h"
#include "names.h"
#include "netdev.h"
#include "object.h"

#define TERN_HEALTH_PERIOD	HZ

/* What is wrong with the status of @engine, or NULL. */
static const char *tern_engine_complaint(const struct tern_engine *engine)
{
	u32 status = tern_reg_read(engine, TERN_REG_STATUS);

	if (status == TERN_REG_GONE)
		return "is gone";
	if (status & TERN_STATUS_FATAL) {
		dev_err(&engine->tdev->pdev->dev, "fatal error %s\n",
			tern_fatal_name((status & TERN_STATUS_REASON_MASK) >>
					TERN_STATUS_REASON_SHIFT));
		return "has stopped";
	}
	if (!(status & TERN_STATUS_READY))
		return "was reset by others";
	return NULL;
}

/*
 * Returns the reason that was given to tern_dev_accuse(), or the complaint of the first engine that
 * has one, since the card fails if one engine fails. Returns NULL if there is neither.
 */
static const char *tern_health_complaint(const struct tern_dev *tdev)
{
	const char *why = READ_ONCE(tdev->accusation);
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
	tern_netdev_update_link(tdev);
	tern_netdev_kick(tdev);
	tern_cqs_recheck(tdev);
	schedule_delayed_work(&tdev->health, TERN_HEALTH_PERIOD);
}

void tern_health_init(struct tern_dev *tdev)
{
	INIT_DELAYED_WORK(&tdev->health, tern_health_work);
}

void tern_health_start(struct tern_dev *tdev)
{
	schedule_delayed_work(&tdev->health, TERN_HEALTH_PERIOD);
}

void tern_health_stop(struct tern_dev *tdev)
{
	cancel_delayed_work_sync(&tdev->health);
}
