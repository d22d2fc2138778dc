/* SPDX-License-Identifier: GPL-2.0 */
/* Registers and doorbells: all MMIO of the driver goes through here. */
#ifndef TERN_KERNEL_HW_H
#define TERN_KERNEL_HW_H

#include <linux/io.h>

#include "tern.h"
#include "tern/tern_hw.h"

/* Every register reads so when the card is gone. */
#define TERN_REG_GONE	(~0u)

static inline u32 tern_reg_read(const struct tern_engine *engine, u32 reg)
{
	return readl(engine->regs + reg);
}

static inline void tern_reg_write(struct tern_engine *engine, u32 reg, u32 value)
{
	writel(value, engine->regs + reg);
}

/*
 * Rings a doorbell. writeq() orders the store after all earlier stores to memory. @doorbell is
 * TERN_DB_*, @num the queue's number and flags.
 */
static inline void tern_db_ring(struct tern_dev *tdev, u32 doorbell, u32 num, u32 index)
{
	struct tern_engine *engine = tern_engine_of(tdev, num & TERN_DB_NUM_MASK);

	writeq((u64)index << TERN_DB_INDEX_SHIFT | num, engine->db + doorbell);
}

int tern_hw_identify(struct tern_dev *tdev);
int tern_hw_reset(struct tern_dev *tdev);
int tern_hw_enable(struct tern_engine *engine, dma_addr_t aq, dma_addr_t acq, u32 log_size);
void tern_hw_aq_irq(struct tern_engine *engine, bool on);
bool tern_hw_link_up(const struct tern_dev *tdev);
/* In Mb/s; 0 of a card that is gone. */
u32 tern_hw_link_speed(const struct tern_dev *tdev);

#endif
