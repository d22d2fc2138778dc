// SPDX-License-Identifier: GPL-2.0
/* The PCI driver: probe, remove, reset and shutdown. */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>

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

#define TERN_BARS	(BIT(TERN_BAR_REGS) | BIT(TERN_BAR_DOORBELLS) | BIT(TERN_BAR_DM))

/* ---- what lower layers report to upper ones ---------------------------------------- */

static void tern_link_event(struct tern_dev *tdev, u32 id, u8 type)
{
	tern_netdev_update_link(tdev);
}

static void tern_card_died(struct tern_dev *tdev)
{
	tern_netdev_update_link(tdev);
	tern_ib_device_fatal(tdev);
	tern_cqs_flush(tdev);
	tern_devlink_card_failed(tdev);
}

static const struct tern_upcalls tern_upcalls = {
	.event = {
		[TERN_EVENT_COMP] = tern_cq_event,
		[TERN_EVENT_CQ_ERR] = tern_cq_event,
		[TERN_EVENT_QP_FATAL] = tern_qp_event,
		[TERN_EVENT_QP_REQ_ERR] = tern_qp_event,
		[TERN_EVENT_QP_ACCESS_ERR] = tern_qp_event,
		[TERN_EVENT_COMM_EST] = tern_qp_event,
		[TERN_EVENT_SQ_DRAINED] = tern_qp_event,
		[TERN_EVENT_LAST_WQE] = tern_qp_event,
		[TERN_EVENT_PAGE_FAULT] = tern_qp_event,
		[TERN_EVENT_SRQ_LIMIT] = tern_srq_event,
		[TERN_EVENT_SRQ_ERR] = tern_srq_event,
		[TERN_EVENT_WQ_FATAL] = tern_wq_event,
		[TERN_EVENT_LINK] = tern_link_event,
	},
	.died = tern_card_died,
	.queue_failed = tern_devlink_queue_failed,
	.port_changed = tern_ib_update_port,
};

/* ---- start and stop ------------------------------------------------------------- */

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

/* tern_dev_stop() also ends bus mastering. */
static void tern_stop_card(struct tern_dev *tdev)
{
	tern_dev_stop(tdev);
	tern_aqs_exit(tdev);
}

static int tern_start_card(struct tern_dev *tdev)
{
	int err;

	err = tern_hw_reset(tdev);
	if (err)
		return err;

	tdev->state = 0;
	tdev->failure = NULL;
	pci_set_master(tdev->pdev);
	err = tern_aqs_init(tdev);
	if (err)
		goto err_master;
	err = tern_cmd_query_device(&tdev->engines[0], &tdev->attr);
	if (err)
		goto err_aq;
	tern_limit_attr(&tdev->attr);
	return 0;

err_aq:
	tern_stop_card(tdev);
	return err;
err_master:
	pci_clear_master(tdev->pdev);
	return err;
}

static int tern_register(struct tern_dev *tdev)
{
	int err;

	err = tern_cmd_alloc_pd(&tdev->engines[0], &tdev->kernel_pdn);
	if (err)
		return err;
	err = tern_netdev_register(tdev);
	if (err)
		goto err_pd;
	err = tern_ib_register(tdev);
	if (err)
		goto err_netdev;
	return 0;

err_netdev:
	tern_netdev_unregister(tdev);
err_pd:
	tern_cmd_dealloc_pd(tdev, tdev->kernel_pdn);
	return err;
}

static void tern_unregister(struct tern_dev *tdev)
{
	tern_ib_unregister(tdev);
	tern_netdev_unregister(tdev);
	tern_cmd_dealloc_pd(tdev, tdev->kernel_pdn);
}

static int tern_up(struct tern_dev *tdev)
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
	err = tern_register(tdev);
	if (err)
		goto err_stats;

	tern_health_start(tdev);
	tern_debugfs_add(tdev);
	tdev->up = true;
	return 0;

err_stats:
	tern_stats_exit(tdev);
err_eqs:
	tern_eqs_exit(tdev);
err_card:
	tern_stop_card(tdev);
	return err;
}

static void tern_down(struct tern_dev *tdev)
{
	if (!tdev->up)
		return;
	tdev->up = false;
	tern_debugfs_remove(tdev);
	tern_health_stop(tdev);
	tern_unregister(tdev);
	tern_stats_exit(tdev);
	tern_eqs_exit(tdev);
	tern_stop_card(tdev);
}

/* ---- PCI -------------------------------------------------------------------------- */

/* The first page of each engine is the driver's. They come first; the rest is for processes. */
static void __iomem *tern_map_doorbells(struct tern_dev *tdev)
{
	return ioremap(pci_resource_start(tdev->pdev, TERN_BAR_DOORBELLS),
		       tdev->num_engines * TERN_DB_PAGE_SIZE);
}

/* Maps the registers, then the doorbells: a register tells the number of engines. */
static int tern_map_engines(struct tern_dev *tdev)
{
	void __iomem *regs, *db;
	int err;
	u32 i;

	regs = pci_iomap(tdev->pdev, TERN_BAR_REGS, 0);
	if (!regs)
		return -ENOMEM;
	tdev->engines[0].regs = regs;
	err = tern_hw_identify(tdev);
	if (err)
		goto err_regs;
	db = tern_map_doorbells(tdev);
	if (!db) {
		err = -ENOMEM;
		goto err_regs;
	}

	for (i = 0; i < tdev->num_engines; i++) {
		tdev->engines[i].tdev = tdev;
		tdev->engines[i].regs = regs + i * TERN_REGS_SIZE;
		tdev->engines[i].db = db + i * TERN_DB_PAGE_SIZE;
	}
	return 0;

err_regs:
	pci_iounmap(tdev->pdev, regs);
	return err;
}

static void tern_unmap_engines(struct tern_dev *tdev)
{
	iounmap(tdev->engines[0].db);
	pci_iounmap(tdev->pdev, tdev->engines[0].regs);
}

static int tern_pci_init(struct tern_dev *tdev)
{
	struct pci_dev *pdev = tdev->pdev;
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	err = pci_request_selected_regions(pdev, TERN_BARS, TERN_DRV_NAME);
	if (err)
		goto err_device;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_regions;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	err = tern_map_engines(tdev);
	if (err)
		goto err_regions;
	return 0;

err_regions:
	pci_release_selected_regions(pdev, TERN_BARS);
err_device:
	pci_disable_device(pdev);
	return err;
}

static void tern_pci_exit(struct tern_dev *tdev)
{
	tern_objects_exit(tdev);
	tern_unmap_engines(tdev);
	pci_release_selected_regions(tdev->pdev, TERN_BARS);
	pci_disable_device(tdev->pdev);
}

static struct tern_dev *tern_dev_alloc(struct pci_dev *pdev)
{
	struct tern_dev *tdev = devm_kzalloc(&pdev->dev, sizeof(*tdev), GFP_KERNEL);

	if (!tdev)
		return NULL;
	tdev->pdev = pdev;
	tdev->upcalls = &tern_upcalls;
	mutex_init(&tdev->stop_lock);
	mutex_init(&tdev->stats_lock);
	spin_lock_init(&tdev->ib_lock);
	tern_objects_init(tdev);
	tern_health_init(tdev);
	return tdev;
}

static int tern_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct tern_dev *tdev = tern_dev_alloc(pdev);
	int err;

	if (!tdev)
		return -ENOMEM;
	err = tern_pci_init(tdev);
	if (err)
		return err;

	pci_set_drvdata(pdev, tdev);
	err = tern_devlink_init(tdev);
	if (err)
		goto err_pci;
	err = tern_up(tdev);
	if (err)
		goto err_devlink;
	tern_devlink_register(tdev);
	return 0;

err_devlink:
	tern_devlink_exit(tdev);
err_pci:
	tern_pci_exit(tdev);
	return err;
}

/* A card that was pulled out is declared dead first, or each command would time out. */
static void tern_remove(struct pci_dev *pdev)
{
	struct tern_dev *tdev = pci_get_drvdata(pdev);

	tern_devlink_unregister(tdev);
	if (tdev->up && !pci_device_is_present(pdev))
		tern_dev_fail(tdev, "is gone");
	tern_down(tdev);
	tern_devlink_exit(tdev);
	tern_pci_exit(tdev);
}

/* The system goes down, perhaps by kexec: only DMA has to stop. */
static void tern_shutdown(struct pci_dev *pdev)
{
	struct tern_dev *tdev = pci_get_drvdata(pdev);

	if (!tdev->up)
		return;
	tern_health_stop(tdev);
	rtnl_lock();
	netif_device_detach(tdev->netdev);
	rtnl_unlock();
	tern_dev_stop(tdev);
}

/* A function level reset loses all objects, so users see the device go and a new one come. */
static void tern_reset_prepare(struct pci_dev *pdev)
{
	tern_down(pci_get_drvdata(pdev));
}

static void tern_reset_done(struct pci_dev *pdev)
{
	struct tern_dev *tdev = pci_get_drvdata(pdev);
	int err = tern_up(tdev);

	if (err)
		dev_err(&pdev->dev, "not usable after a reset: %d\n", err);
	else
		tern_devlink_card_works(tdev);
}

static const struct pci_error_handlers tern_err_handlers = {
	.reset_prepare = tern_reset_prepare,
	.reset_done = tern_reset_done,
};

static const struct pci_device_id tern_pci_ids[] = {
	{ PCI_DEVICE(TERN_PCI_VENDOR_ID, TERN_PCI_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, tern_pci_ids);

static struct pci_driver tern_pci_driver = {
	.name = TERN_DRV_NAME,
	.id_table = tern_pci_ids,
	.probe = tern_probe,
	.remove = tern_remove,
	.shutdown = tern_shutdown,
	.err_handler = &tern_err_handlers,
};

static int __init tern_init(void)
{
	int err;

	tern_debugfs_init();
	err = pci_register_driver(&tern_pci_driver);
	if (err)
		tern_debugfs_exit();
	return err;
}
module_init(tern_init);

static void __exit tern_exit(void)
{
	pci_unregister_driver(&tern_pci_driver);
	tern_debugfs_exit();
}
module_exit(tern_exit);

MODULE_DESCRIPTION("Tern, the emulated RDMA network card");
MODULE_LICENSE("GPL");
