// SPDX-License-Identifier: GPL-2.0
/*
 * The admin queues. Any number of threads may execute commands. Each sleeps until its completion
 * arrives: by interrupt once vector 0 is set up, by polling before.
 *
 * If the card does not answer a command in time, the driver no longer knows which memory the
 * card uses. It stops the card, and every command fails with -EIO until the card is started again.
 */
#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "aq.h"
#include "hw.h"
#include "trace.h"

/*
 * The time limit of a command, from its submission or from the last completion of an earlier
 * command, whichever is later. It is long, since the host may not schedule an emulated card for
 * seconds.
 */
#define TERN_AQ_TIMEOUT		(20 * HZ)
/* How often a waiter polls by itself: the card may be gone, or an interrupt lost. */
#define TERN_AQ_LOOK_IRQ	(HZ / 5)
#define TERN_AQ_LOOK_POLLED	1

struct tern_aq_wait {
	struct completion done;
	struct tern_hw_aq_cqe *result;
	u16 opcode;
	u32 index;		/* in the ring, not masked */
	unsigned long submitted;	/* in jiffies */
	ktime_t begun;
	u8 status;
	u16 refused;	/* with BAD_FIELD, the offset in the command of the field; 0: unknown */
	int err;
};

static int tern_aq_errno(u8 status)
{
	switch (status) {
	case TERN_AQ_OK:
		return 0;
	case TERN_AQ_BAD_OPCODE:
		return -EOPNOTSUPP;
	case TERN_AQ_NO_RESOURCE:
		return -ENOMEM;
	case TERN_AQ_BUSY:
		return -EBUSY;
	case TERN_AQ_DMA_FAULT:
		return -EFAULT;
	default:
		return -EINVAL;
	}
}

static u16 tern_aq_free_id(const struct tern_aq *aq)
{
	u16 id = 0;

	while (aq->waits[id])
		id++;
	return id;
}

static int tern_aq_submit(struct tern_engine *engine, struct tern_hw_aq_cmd *cmd,
			  struct tern_aq_wait *wait)
{
	struct tern_aq *aq = engine->aq;
	unsigned long flags;
	u16 id;

	spin_lock_irqsave(&aq->lock, flags);
	if (tern_is_dead(engine->tdev)) {
		spin_unlock_irqrestore(&aq->lock, flags);
		return -EIO;
	}

	id = tern_aq_free_id(aq);
	aq->waits[id] = wait;
	cmd->id = cpu_to_le16(id);
	trace_tern_cmd_submit(engine, wait->opcode, id);
	aq->cmds[aq->pi & (TERN_AQ_SIZE - 1)] = *cmd;
	wait->index = aq->pi;
	wait->submitted = jiffies;
	aq->pi++;
	/* writel() orders the entry before the index */
	tern_reg_write(engine, TERN_REG_AQ_PI, aq->pi);
	spin_unlock_irqrestore(&aq->lock, flags);
	return 0;
}

/*
 * Returns the next completion, or NULL. Reads the phase before the rest of the entry. Returns a
 * copy, valid until the next call, since a faulty card may overwrite the ring entry at any time.
 */
static const struct tern_hw_aq_cqe *tern_aq_next(struct tern_aq *aq)
{
	const struct tern_hw_aq_cqe *cqe = &aq->cqes[aq->ci & (TERN_AQ_SIZE - 1)];
	u8 phase = aq->ci & TERN_AQ_SIZE ? 0 : TERN_PHASE;

	if ((READ_ONCE(cqe->phase) & TERN_PHASE) != phase)
		return NULL;
	dma_rmb();
	aq->cqe = *cqe;
	barrier(); /* the compiler must not read the ring entry again */
	return &aq->cqe;
}

static void tern_aq_complete(struct tern_aq *aq, const struct tern_hw_aq_cqe *cqe)
{
	u16 id = le16_to_cpu(cqe->id);
	struct tern_aq_wait *wait;

	if (id >= TERN_AQ_SIZE || !aq->waits[id])
		return;
	wait = aq->waits[id];
	aq->waits[id] = NULL;
	wait->status = cqe->status;
	if (cqe->status == TERN_AQ_BAD_FIELD)
		wait->refused = le16_to_cpu(cqe->refused.field);
	if (wait->result)
		*wait->result = *cqe;
	complete(&wait->done);
}

static void tern_aq_reap(struct tern_aq *aq)
{
	const struct tern_hw_aq_cqe *cqe;
	unsigned long flags;
	u32 end;

	spin_lock_irqsave(&aq->lock, flags);
	end = aq->ci + TERN_AQ_SIZE;
	while (aq->ci != end && (cqe = tern_aq_next(aq))) {
		tern_aq_complete(aq, cqe);
		aq->answered = jiffies;
		aq->ci++;
	}
	spin_unlock_irqrestore(&aq->lock, flags);
}

/* Wakes the waiters of all commands that have completed. From any context. */
void tern_aqs_reap(struct tern_dev *tdev)
{
	u32 i;

	for (i = 0; i < tdev->num_engines; i++)
		tern_aq_reap(tdev->engines[i].aq);
}

/* The caller holds the lock. */
static u32 tern_aq_list_waits(const struct tern_aq *aq, struct tern_aq_command *commands)
{
	ktime_t now = ktime_get();
	u32 id, count = 0;

	for (id = 0; id < TERN_AQ_SIZE; id++) {
		if (!aq->waits[id])
			continue;
		commands[count++] = (struct tern_aq_command) {
			.id = id,
			.opcode = aq->waits[id]->opcode,
			.usecs = ktime_us_delta(now, aq->waits[id]->begun),
		};
	}
	return count;
}

/*
 * Writes the commands under way, or those that were when the card stopped, to @commands, which has
 * room for TERN_AQ_SIZE. Returns how many.
 */
u32 tern_aq_list(const struct tern_engine *engine, struct tern_aq_command *commands)
{
	struct tern_aq *aq = engine->aq;
	unsigned long flags;
	u32 count;

	spin_lock_irqsave(&aq->lock, flags);
	if (tern_is_dead(engine->tdev)) {
		count = aq->num_aborted;
		memcpy(commands, aq->aborted, sizeof(aq->aborted));
	} else {
		count = tern_aq_list_waits(aq, commands);
	}
	spin_unlock_irqrestore(&aq->lock, flags);
	return count;
}

static void tern_aq_abort(struct tern_aq *aq)
{
	unsigned long flags;
	int id;

	spin_lock_irqsave(&aq->lock, flags);
	aq->num_aborted = tern_aq_list_waits(aq, aq->aborted);
	for (id = 0; id < TERN_AQ_SIZE; id++) {
		if (!aq->waits[id])
			continue;
		aq->waits[id]->err = -EIO;
		complete(&aq->waits[id]->done);
		aq->waits[id] = NULL;
	}
	spin_unlock_irqrestore(&aq->lock, flags);
}

/*
 * Marks a stopped card dead and ends all commands under way with -EIO. tern_aq_submit() tests
 * the mark under the lock, so no command is added later.
 */
void tern_aqs_abort(struct tern_dev *tdev)
{
	u32 i;

	set_bit(TERN_STATE_DEAD, &tdev->state);
	for (i = 0; i < tdev->num_engines; i++)
		tern_aq_abort(tdev->engines[i].aq);
}

/*
 * Returns whether the card has exceeded the time limit for the command of @wait. The card executes
 * commands in order, so each completion of an earlier command restarts the time limit. A process
 * that waits for slow commands of others does not make the driver reset the card.
 */
static bool tern_aq_overdue(struct tern_aq *aq, const struct tern_aq_wait *wait)
{
	unsigned long flags, since = wait->submitted;

	spin_lock_irqsave(&aq->lock, flags);
	if ((s32)(aq->ci - wait->index) <= 0 && time_after(aq->answered, since))
		since = aq->answered;
	spin_unlock_irqrestore(&aq->lock, flags);
	return time_after(jiffies, since + TERN_AQ_TIMEOUT);
}

static void tern_aq_await(struct tern_engine *engine, struct tern_aq_wait *wait)
{
	struct tern_dev *tdev = engine->tdev;
	u32 status;

	for (;;) {
		if (wait_for_completion_timeout(&wait->done, engine->aq->irq ? TERN_AQ_LOOK_IRQ :
						TERN_AQ_LOOK_POLLED))
			return;
		tern_aq_reap(engine->aq);
		if (try_wait_for_completion(&wait->done))
			return;

		status = tern_reg_read(engine, TERN_REG_STATUS);
		if (status == TERN_REG_GONE)
			tern_dev_fail(tdev, "is gone");
		else if (!(status & TERN_STATUS_READY))
			tern_dev_fail(tdev, "has stopped");
		else if (tern_aq_overdue(engine->aq, wait))
			tern_dev_fail(tdev, "does not answer a command");
		/* tern_dev_fail() ends all waits, this one included */
	}
}

/* Executes @cmd and sets its id. @result may be NULL. */
int tern_aq_exec(struct tern_engine *engine, struct tern_hw_aq_cmd *cmd,
		 struct tern_hw_aq_cqe *result)
{
	struct tern_aq_wait wait = {
		.done = COMPLETION_INITIALIZER_ONSTACK(wait.done),
		.result = result,
		.opcode = le16_to_cpu(cmd->opcode),
	};
	int err;

	might_sleep();
	down(&engine->aq->slots);
	wait.begun = ktime_get();
	err = tern_aq_submit(engine, cmd, &wait);
	if (!err)
		tern_aq_await(engine, &wait);
	up(&engine->aq->slots);

	if (err)
		return err;
	err = wait.err ?: tern_aq_errno(wait.status);
	trace_tern_cmd_complete(engine, wait.opcode, le16_to_cpu(cmd->id), wait.status,
				wait.refused, err, ktime_us_delta(ktime_get(), wait.begun));
	if (wait.status == TERN_AQ_BAD_FIELD)
		dev_dbg(&engine->tdev->pdev->dev, "%s: the card refuses the field at byte %u\n",
			tern_aq_op_name(wait.opcode), wait.refused);
	return err;
}

/* Writes CTRL, which would enable the card again: hence not if it is dead. */
void tern_aqs_set_irq(struct tern_dev *tdev, bool on)
{
	u32 i;

	mutex_lock(&tdev->stop_lock);
	for (i = 0; i < tdev->num_engines; i++) {
		tdev->engines[i].aq->irq = on;
		if (!tern_is_dead(tdev))
			tern_hw_aq_irq(&tdev->engines[i], on);
	}
	mutex_unlock(&tdev->stop_lock);
}

static void tern_aq_free(struct tern_engine *engine)
{
	struct device *dev = &engine->tdev->pdev->dev;
	struct tern_aq *aq = engine->aq;

	if (aq->cqes)
		dma_free_coherent(dev, TERN_AQ_SIZE * TERN_AQ_ENTRY, aq->cqes, aq->cqes_dma);
	aq->cqes = NULL;
	if (aq->cmds)
		dma_free_coherent(dev, TERN_AQ_SIZE * TERN_AQ_ENTRY, aq->cmds, aq->cmds_dma);
	aq->cmds = NULL;
}

static struct tern_aq *tern_aq_new(struct device *dev)
{
	struct tern_aq *aq = devm_kzalloc(dev, sizeof(*aq), GFP_KERNEL);

	if (!aq)
		return NULL;
	spin_lock_init(&aq->lock);
	sema_init(&aq->slots, TERN_AQ_SIZE);
	return aq;
}

/* The card is stopped, so no command is under way and none comes. */
static int tern_aq_alloc(struct tern_engine *engine)
{
	struct device *dev = &engine->tdev->pdev->dev;
	struct tern_aq *aq = engine->aq ?: tern_aq_new(dev);

	if (!aq)
		return -ENOMEM;
	engine->aq = aq;
	aq->pi = 0;
	aq->ci = 0;
	aq->cmds = dma_alloc_coherent(dev, TERN_AQ_SIZE * TERN_AQ_ENTRY, &aq->cmds_dma, GFP_KERNEL);
	aq->cqes = dma_alloc_coherent(dev, TERN_AQ_SIZE * TERN_AQ_ENTRY, &aq->cqes_dma, GFP_KERNEL);
	if (!aq->cmds || !aq->cqes) {
		tern_aq_free(engine);
		return -ENOMEM;
	}
	return 0;
}

/* The card is stopped. */
void tern_aqs_exit(struct tern_dev *tdev)
{
	u32 i;

	for (i = 0; i < tdev->num_engines; i++)
		tern_aq_free(&tdev->engines[i]);
}

static int tern_aqs_enable(struct tern_dev *tdev)
{
	int err = 0;
	u32 i;

	for (i = 0; !err && i < tdev->num_engines; i++) {
		const struct tern_aq *aq = tdev->engines[i].aq;

		err = tern_hw_enable(&tdev->engines[i], aq->cmds_dma, aq->cqes_dma,
				     TERN_AQ_LOG_SIZE);
	}
	return err;
}

/* Makes a card in reset ready for commands. */
int tern_aqs_init(struct tern_dev *tdev)
{
	u32 count;
	int err;

	for (count = 0; count < tdev->num_engines; count++) {
		err = tern_aq_alloc(&tdev->engines[count]);
		if (err)
			goto err_free;
	}

	err = tern_aqs_enable(tdev);
	if (err) {
		dev_err(&tdev->pdev->dev, "the card does not start: %d\n", err);
		goto err_reset;
	}
	return 0;

err_reset:
	tern_hw_reset(tdev);
err_free:
	/* The reset may have failed, and an engine that is enabled writes to its rings. */
	pci_clear_master(tdev->pdev);
	while (count)
		tern_aq_free(&tdev->engines[--count]);
	return err;
}
