// SPDX-License-Identifier: GPL-2.0
/* The card's life as its registers tell it: version, reset, enable, link. */
#include <linux/iopoll.h>

#include "hw.h"

#define TERN_POLL_US		100
#define TERN_RESET_TIMEOUT_US	(5 * USEC_PER_SEC)
#define TERN_READY_TIMEOUT_US	(5 * USEC_PER_SEC)

static void tern_hw_read_mac(struct tern_dev *tdev)
{
	u64 mac = (u64)tern_reg_read(tdev, TERN_REG_MAC_HI) << 32 |
		  tern_reg_read(tdev, TERN_REG_MAC_LO);
	int i;

	for (i = 0; i < sizeof(tdev->mac); i++)
		tdev->mac[i] = mac >> (8 * i);
}

/* Checks that this is a card we can drive, and reads what it offers. */
int tern_hw_identify(struct tern_dev *tdev)
{
	struct device *dev = &tdev->pdev->dev;
	u32 version = tern_reg_read(tdev, TERN_REG_VERSION);
	u64 db_size = pci_resource_len(tdev->pdev, TERN_BAR_DOORBELLS);

	if (version == TERN_REG_GONE)
		return -ENODEV;
	if (version >> 16 != TERN_HW_MAJOR) {
		dev_err(dev, "the card's interface is version %u.%u, this driver knows %u\n",
			version >> 16, version & 0xffff, TERN_HW_MAJOR);
		return -EOPNOTSUPP;
	}

	tdev->caps = tern_reg_read(tdev, TERN_REG_CAPS);
	tdev->db_pages = min_t(u64, tern_reg_read(tdev, TERN_REG_DB_PAGES),
			       db_size / TERN_DB_PAGE_SIZE);
	tern_hw_read_mac(tdev);

	if (!(tdev->caps & TERN_CAP_ETH)) {
		dev_err(dev, "the card has no Ethernet function\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* When this returns 0 the card does no more DMA, raises no interrupt and has no objects. */
int tern_hw_reset(struct tern_dev *tdev)
{
	u32 status;
	int err;

	tern_reg_write(tdev, TERN_REG_CTRL, TERN_CTRL_RESET);
	err = readl_poll_timeout(tdev->regs + TERN_REG_STATUS, status,
				 status == TERN_REG_GONE || !(status & TERN_STATUS_RESETTING),
				 TERN_POLL_US, TERN_RESET_TIMEOUT_US);
	if (err)
		return err;
	return status == TERN_REG_GONE ? -ENODEV : 0;
}

/* Hands the admin rings to the card and waits until it takes commands. */
int tern_hw_enable(struct tern_dev *tdev, dma_addr_t aq, dma_addr_t acq, u32 log_size)
{
	u32 status;
	int err;

	tern_reg_write(tdev, TERN_REG_AQ_LOG_SIZE, log_size);
	tern_reg_write(tdev, TERN_REG_AQ_BASE_LO, lower_32_bits(aq));
	tern_reg_write(tdev, TERN_REG_AQ_BASE_HI, upper_32_bits(aq));
	tern_reg_write(tdev, TERN_REG_ACQ_BASE_LO, lower_32_bits(acq));
	tern_reg_write(tdev, TERN_REG_ACQ_BASE_HI, upper_32_bits(acq));
	tern_reg_write(tdev, TERN_REG_CTRL, TERN_CTRL_ENABLE);

	/* All-ones, of a card that is gone, shows the FATAL bit too. */
	err = readl_poll_timeout(tdev->regs + TERN_REG_STATUS, status,
				 status & (TERN_STATUS_READY | TERN_STATUS_FATAL),
				 TERN_POLL_US, TERN_READY_TIMEOUT_US);
	if (err)
		return err;
	return status & TERN_STATUS_FATAL ? -EIO : 0;
}

void tern_hw_aq_irq(struct tern_dev *tdev, bool on)
{
	tern_reg_write(tdev, TERN_REG_CTRL, TERN_CTRL_ENABLE | (on ? TERN_CTRL_AQ_IRQ : 0));
}

bool tern_hw_link_up(const struct tern_dev *tdev)
{
	u32 link = tern_reg_read(tdev, TERN_REG_LINK);

	return link != TERN_REG_GONE && (link & TERN_LINK_UP);
}
