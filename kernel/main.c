// SPDX-License-Identifier: GPL-2.0
/* The PCI driver: probe, remove, shutdown, suspend, reset and errors. */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm.h>
#include <net/devlink.h>

#include "hw.h"
#include "ib.h"
#include "main.h"
#include "netdev.h"

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
	tern_cqs_recheck(tdev);
	tern_qps_died(tdev);
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
	.queues_work = tern_devlink_queues_work,
	.port_changed = tern_ib_update_port,
};

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
	/*
	 * tern_reset_card() restores this. Newer kernels have saved the disabled device already.
	 * The kernel that ran before a kexec may have left bus mastering enabled, so disable it.
	 */
	pci_clear_master(pdev);
	pci_save_state(pdev);
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
	__set_bit(TERN_STATE_DEAD, &tdev->state);
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
	err = tern_add(tdev);
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

static void tern_remove(struct pci_dev *pdev)
{
	struct tern_dev *tdev = pci_get_drvdata(pdev);

	tern_devlink_unregister(tdev);
	tern_del(tdev);
	tern_devlink_exit(tdev);
	tern_pci_exit(tdev);
}

static void tern_shutdown(struct pci_dev *pdev)
{
	tern_quiesce(pci_get_drvdata(pdev));
}

/* ---- while the card is away --------------------------------------------------------- */

static void tern_pci_hold(struct pci_dev *pdev, u8 reason, const char *why)
{
	struct tern_dev *tdev = pci_get_drvdata(pdev);

	devl_lock(tdev->devlink);
	tern_hold(tdev, reason, why);
	devl_unlock(tdev->devlink);
}

static int tern_pci_release(struct pci_dev *pdev, u8 reason)
{
	struct tern_dev *tdev = pci_get_drvdata(pdev);
	int err;

	devl_lock(tdev->devlink);
	err = tern_release(tdev, reason);
	devl_unlock(tdev->devlink);
	return err;
}

static int tern_suspend(struct device *dev)
{
	tern_pci_hold(to_pci_dev(dev), TERN_HELD_SUSPEND, NULL);
	return 0;
}

static int tern_resume(struct device *dev)
{
	return tern_pci_release(to_pci_dev(dev), TERN_HELD_SUSPEND);
}

static DEFINE_SIMPLE_DEV_PM_OPS(tern_pm_ops, tern_suspend, tern_resume);

/* A function level reset. */
static void tern_reset_prepare(struct pci_dev *pdev)
{
	tern_pci_hold(pdev, TERN_HELD_RESET, NULL);
}

static void tern_reset_done(struct pci_dev *pdev)
{
	tern_pci_release(pdev, TERN_HELD_RESET);
}

static pci_ers_result_t tern_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	tern_pci_hold(pdev, TERN_HELD_ERROR, "had an error of PCI Express");
	return state == pci_channel_io_perm_failure ? PCI_ERS_RESULT_DISCONNECT :
						      PCI_ERS_RESULT_NEED_RESET;
}

/* tern_error_resume() restores the configuration space and starts the card. */
static pci_ers_result_t tern_slot_reset(struct pci_dev *pdev)
{
	return PCI_ERS_RESULT_RECOVERED;
}

static void tern_error_resume(struct pci_dev *pdev)
{
	tern_pci_release(pdev, TERN_HELD_ERROR);
}

static const struct pci_error_handlers tern_err_handlers = {
	.error_detected = tern_error_detected,
	.slot_reset = tern_slot_reset,
	.resume = tern_error_resume,
	.reset_prepare = tern_reset_prepare,
	.reset_done = tern_reset_done,
};

/* ---- the module ----------------------------------------------------------------------- */

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
	.driver.pm = pm_sleep_ptr(&tern_pm_ops),
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
