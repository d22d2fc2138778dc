// SPDX-License-Identifier: GPL-2.0
/* Registers: version, capabilities, reset, enable and link. */
#include <linux/iopoll.h>

#include "hw.h"

#define TERN_POLL_US		100
#define TERN_RESET_TIMEOUT_US	(5 * USEC_PER_SEC)
#define TERN_READY_TIMEOUT_US	(5 * USEC_PER_SEC)

static void tern_hw_read_mac(struct tern_dev *tdev)
{
	u64 mac = (u64)tern_reg_read(&tdev->engines[0], TERN_REG_MAC_HI) << 32 |
		  tern_reg_read(&tdev->engines[0], TERN_REG_MAC_LO);
	int i;

	for (i = 0; i < sizeof(tdev->mac); i++)
		tdev->mac[i] = mac >> (8 * i);
}

/* The register reads zero on cards of an older interface, which have one engine. */
static int tern_hw_count_engines(struct tern_dev *tdev)
{
	u32 engines = tern_reg_read(&tdev->engines[0], TERN_REG_ENGINES) ?: 1;
	u64 regs = pci_resource_len(tdev->pdev, TERN_BAR_REGS) / TERN_REGS_SIZE;
	u64 pages = pci_resource_len(tdev->pdev, TERN_BAR_DOORBELLS) / TERN_DB_PAGE_SIZE;
	u64 room = min3(regs, pages, (u64)TERN_MAX_ENGINES);

	if (engines > room) {
		dev_err(&tdev->pdev->dev,
			"the card has %u engines, its BARs and this driver have room for %llu\n",
			engines, room);
		return -EOPNOTSUPP;
	}
	tdev->num_engines = engines;
	tdev->db_pages = min_t(u64, tern_reg_read(&tdev->engines[0], TERN_REG_DB_PAGES),
			       pages / engines) * engines;
	return 0;
}

/*
 * Checks that the driver supports the card, and reads its capabilities. Only the registers of
 * the first engine are mapped yet.
 */
int tern_hw_identify(struct tern_dev *tdev)
{
	struct device *dev = &tdev->pdev->dev;
	u32 version = tern_reg_read(&tdev->engines[0], TERN_REG_VERSION);

	if (version == TERN_REG_GONE)
		return -ENODEV;
	if (version >> 16 != TERN_HW_MAJOR) {
		dev_err(dev, "the card's interface is version %u.%u, this driver knows %u\n",
			version >> 16, version & 0xffff, TERN_HW_MAJOR);
		return -EOPNOTSUPP;
	}

	tdev->caps = tern_reg_read(&tdev->engines[0], TERN_REG_CAPS);
	tern_hw_read_mac(tdev);

	if (!(tdev->caps & TERN_CAP_ETH)) {
		dev_err(dev, "the card has no Ethernet function\n");
		return -EOPNOTSUPP;
	}
	return tern_hw_count_engines(tdev);
}

static int tern_hw_await_reset(const struct tern_engine *engine)
{
	u32 status;
	int err;

	err = readl_poll_timeout(engine->regs + TERN_REG_STATUS, status,
				 status == TERN_REG_GONE || !(status & TERN_STATUS_RESETTING),
				 TERN_POLL_US, TERN_RESET_TIMEOUT_US);
	if (err)
		return err;
	return status == TERN_REG_GONE ? -ENODEV : 0;
}

/* On success the card does no DMA, raises no interrupt and has no objects. */
int tern_hw_reset(struct tern_dev *tdev)
{
	int err = 0;
	u32 i;

	for (i = 0; i < tdev->num_engines; i++)
		tern_reg_write(&tdev->engines[i], TERN_REG_CTRL, TERN_CTRL_RESET);
	for (i = 0; !err && i < tdev->num_engines; i++)
		err = tern_hw_await_reset(&tdev->engines[i]);
	return err;
}

/* Gives the admin rings to the engine and waits until it is ready for commands. */
int tern_hw_enable(struct tern_engine *engine, dma_addr_t aq, dma_addr_t acq, u32 log_size)
{
	u32 status;
	int err;

	tern_reg_write(engine, TERN_REG_AQ_LOG_SIZE, log_size);
	tern_reg_write(engine, TERN_REG_AQ_BASE_LO, lower_32_bits(aq));
	tern_reg_write(engine, TERN_REG_AQ_BASE_HI, upper_32_bits(aq));
	tern_reg_write(engine, TERN_REG_ACQ_BASE_LO, lower_32_bits(acq));
	tern_reg_write(engine, TERN_REG_ACQ_BASE_HI, upper_32_bits(acq));
	tern_reg_write(engine, TERN_REG_CTRL, TERN_CTRL_ENABLE);

	/* A card that is gone reads as all-ones, so with FATAL set. */
	err = readl_poll_timeout(engine->regs + TERN_REG_STATUS, status,
				 status & (TERN_STATUS_READY | TERN_STATUS_FATAL),
				 TERN_POLL_US, TERN_READY_TIMEOUT_US);
	if (err)
		return err;
	return status & TERN_STATUS_FATAL ? -EIO : 0;
}

void tern_hw_aq_irq(struct tern_engine *engine, bool on)
{
	tern_reg_write(engine, TERN_REG_CTRL, TERN_CTRL_ENABLE | (on ? TERN_CTRL_AQ_IRQ : 0));
}

bool tern_hw_link_up(const struct tern_dev *tdev)
{
	u32 link = tern_reg_read(&tdev->engines[0], TERN_REG_LINK);

	return link != TERN_REG_GONE && (link & TERN_LINK_UP);
}

u32 tern_hw_link_speed(const struct tern_dev *tdev)
{
	u32 speed = tern_reg_read(&tdev->engines[0], TERN_REG_LINK_SPEED);

	return speed == TERN_REG_GONE ? 0 : speed;
}
