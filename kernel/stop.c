// SPDX-License-Identifier: GPL-2.0
/*
 * Stopping the card, on request or after a failure. A stopped card is dead: it does no DMA,
 * commands fail at once, and destroying objects only frees memory. lifecycle.c starts it again.
 */
#include "aq.h"
#include "hw.h"
#include "trace.h"

/* Returns whether the card was alive until now. */
static bool tern_stop_locked(struct tern_dev *tdev)
{
	if (tern_is_dead(tdev))
		return false;
	tern_hw_reset(tdev);
	/* If the reset did not reach the card, this still keeps its DMA off the bus. */
	pci_clear_master(tdev->pdev);
	tern_aqs_abort(tdev);
	return true;
}

/*
 * Stops the card. Commands under way end with -EIO only after the reset, so that no caller
 * frees memory that the card still writes to.
 */
void tern_dev_stop(struct tern_dev *tdev)
{
	mutex_lock(&tdev->stop_lock);
	tern_stop_locked(tdev);
	mutex_unlock(&tdev->stop_lock);
}

/* Records STATUS of each engine before a reset clears it. The caller holds stop_lock. */
static void tern_note_failure(struct tern_dev *tdev, const char *why)
{
	u32 i;

	WRITE_ONCE(tdev->failure, why);
	for (i = 0; i < tdev->num_engines; i++)
		tdev->engines[i].failed_status = tern_reg_read(&tdev->engines[i], TERN_REG_STATUS);
}

/*
 * Stops a card that has failed, logs @why and notifies the layers above. Does nothing if the card
 * is dead already. @why is a constant string that follows the words "the card". Sleeps.
 */
void tern_dev_fail(struct tern_dev *tdev, const char *why)
{
	bool first;

	mutex_lock(&tdev->stop_lock);
	if (!tern_is_dead(tdev))
		tern_note_failure(tdev, why);
	first = tern_stop_locked(tdev);
	mutex_unlock(&tdev->stop_lock);
	if (!first)
		return;

	trace_tern_card_failed(tdev, why);
	dev_err(&tdev->pdev->dev, "the card %s\n", why);
	tdev->upcalls->died(tdev);
}
