/* SPDX-License-Identifier: GPL-2.0 */
/* The admin queue of each engine, the transport of commands and their results. */
#ifndef TERN_AQ_H
#define TERN_AQ_H

#include <linux/bits.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "tern/tern_hw.h"

struct tern_aq_wait;
struct tern_dev;
struct tern_engine;

/* One page for each ring. */
#define TERN_AQ_LOG_SIZE	5
#define TERN_AQ_SIZE		BIT(TERN_AQ_LOG_SIZE)

/* A command that the card has not answered. */
struct tern_aq_command {
	u16 id;
	u16 opcode;
	s64 usecs;		/* since it was submitted */
};

struct tern_aq {
	/* Limits the commands under way to what the rings hold. */
	struct semaphore slots;

	spinlock_t lock;	/* protects the rest, except irq */
	struct tern_hw_aq_cmd *cmds;
	struct tern_hw_aq_cqe *cqes;
	dma_addr_t cmds_dma;
	dma_addr_t cqes_dma;
	u32 pi;
	u32 ci;
	unsigned long answered;	/* in jiffies, the last completion */
	struct tern_hw_aq_cqe cqe;	/* the last completion that was read */
	bool irq;		/* completions raise vector 0; written under stop_lock */
	struct tern_aq_wait *waits[TERN_AQ_SIZE];	/* by the command's id */
	/* what was under way when the card was stopped */
	struct tern_aq_command aborted[TERN_AQ_SIZE];
	u32 num_aborted;
};

int tern_aqs_init(struct tern_dev *tdev);
void tern_aqs_exit(struct tern_dev *tdev);
void tern_aqs_set_irq(struct tern_dev *tdev, bool on);
void tern_aqs_reap(struct tern_dev *tdev);
void tern_aqs_abort(struct tern_dev *tdev);
u32 tern_aq_list(const struct tern_engine *engine, struct tern_aq_command *commands);
int tern_aq_exec(struct tern_engine *engine, struct tern_hw_aq_cmd *cmd,
		 struct tern_hw_aq_cqe *result);

/* stop.c */
void tern_dev_stop(struct tern_dev *tdev);
void tern_dev_fail(struct tern_dev *tdev, const char *why);

#endif
