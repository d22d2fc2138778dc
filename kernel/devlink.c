// SPDX-License-Identifier: GPL-2.0
/*
 * devlink: what the card is (dev info), dev reload, and its health. The reporter fw_fatal tells why
 * the card was stopped, with a dump of its state at that time, and starts the card again; tx tells
 * of queues of the net_device.
 */
#include <linux/mutex.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/devlink.h>

#include "aq.h"
#include "compat.h"
#include "main.h"
#include "names.h"
#include "netdev.h"
#include "tern.h"

/* If a card fails again within this time after a recovery, a user must start the next one. */
#define TERN_GRACE_MS	(60 * MSEC_PER_SEC)

struct tern_devlink {
	struct tern_dev *tdev;
	struct devlink_health_reporter *fw_fatal;
	struct devlink_health_reporter *tx;
	struct work_struct fatal_work;
	struct mutex lock;	/* held over reports; protects registered */
	bool registered;	/* with devlink, which takes reports only then */
};

static int tern_devlink_info_get(struct devlink *devlink, struct devlink_info_req *req,
				 struct netlink_ext_ack *extack)
{
	struct tern_devlink *priv = devlink_priv(devlink);
	const struct tern_dev *tdev = priv->tdev;
	u32 fw = tdev->attr.fw_version;
	char text[32];
	int err;

	err = tern_devlink_driver_name(req, TERN_DRV_NAME);
	if (err)
		return err;
	/* Only the address differs between cards. */
	snprintf(text, sizeof(text), "%pM", tdev->mac);
	err = devlink_info_serial_number_put(req, text);
	if (err)
		return err;
	snprintf(text, sizeof(text), "%u.%u", fw >> 16, fw & 0xffff);
	return devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW, text);
}

/* The net_device stays registered, so it stays in its name space. */
static int tern_reload_down(struct devlink *devlink, bool netns_change,
			    enum devlink_reload_action action, enum devlink_reload_limit limit,
			    struct netlink_ext_ack *extack)
{
	struct tern_devlink *priv = devlink_priv(devlink);

	if (netns_change) {
		NL_SET_ERR_MSG_MOD(extack, "a reload does not move the card to another name space");
		return -EOPNOTSUPP;
	}
	if (priv->tdev->held)
		return -EBUSY;
	tern_hold(priv->tdev, TERN_HELD_RELOAD, NULL);
	return 0;
}

static int tern_reload_up(struct devlink *devlink, enum devlink_reload_action action,
			  enum devlink_reload_limit limit, u32 *actions_performed,
			  struct netlink_ext_ack *extack)
{
	struct tern_devlink *priv = devlink_priv(devlink);

	*actions_performed = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT);
	return tern_release(priv->tdev, TERN_HELD_RELOAD);
}

static const struct devlink_ops tern_devlink_ops = {
	.info_get = tern_devlink_info_get,
	.reload_actions = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT),
	.reload_down = tern_reload_down,
	.reload_up = tern_reload_up,
};

/* ---- the card --------------------------------------------------------------------------- */

/*
 * Newer kernels keep errors of devlink_fmsg_*() in the message and return nothing; with older ones
 * a message without memory is incomplete.
 */
static void tern_dump_command(struct devlink_fmsg *fmsg, const struct tern_aq_command *command)
{
	devlink_fmsg_obj_nest_start(fmsg);
	devlink_fmsg_string_pair_put(fmsg, "command", tern_aq_op_name(command->opcode));
	devlink_fmsg_u32_pair_put(fmsg, "id", command->id);
	devlink_fmsg_u64_pair_put(fmsg, "usecs", command->usecs);
	devlink_fmsg_obj_nest_end(fmsg);
}

static void tern_dump_engine(struct devlink_fmsg *fmsg, const struct tern_engine *engine)
{
	struct tern_aq_command commands[TERN_AQ_SIZE];
	u32 n, count = tern_aq_list(engine, commands);
	u32 status = engine->failed_status;
	u8 reason = (status & TERN_STATUS_REASON_MASK) >> TERN_STATUS_REASON_SHIFT;

	devlink_fmsg_obj_nest_start(fmsg);
	devlink_fmsg_u32_pair_put(fmsg, "engine", engine - engine->tdev->engines);
	devlink_fmsg_u32_pair_put(fmsg, "status", status);
	devlink_fmsg_string_pair_put(fmsg, "reason", tern_fatal_name(reason));
	devlink_fmsg_arr_pair_nest_start(fmsg, "unanswered");
	for (n = 0; n < count; n++)
		tern_dump_command(fmsg, &commands[n]);
	devlink_fmsg_arr_pair_nest_end(fmsg);
	devlink_fmsg_obj_nest_end(fmsg);
}

static int tern_fw_fatal_dump(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
			      void *context, struct netlink_ext_ack *extack)
{
	const struct tern_devlink *priv = devlink_health_reporter_priv(reporter);
	const struct tern_dev *tdev = priv->tdev;
	u32 i;

	if (!tern_is_dead(tdev)) {
		NL_SET_ERR_MSG_MOD(extack, "the card works");
		return -EINVAL;
	}
	devlink_fmsg_string_pair_put(fmsg, "card", tdev->failure ?: "was stopped");
	devlink_fmsg_arr_pair_nest_start(fmsg, "engines");
	for (i = 0; i < tdev->num_engines; i++)
		tern_dump_engine(fmsg, &tdev->engines[i]);
	devlink_fmsg_arr_pair_nest_end(fmsg);
	return 0;
}

/* devlink calls this by itself after a report, unless the grace period has not passed. */
static int tern_fw_fatal_recover(struct devlink_health_reporter *reporter, void *context,
				 struct netlink_ext_ack *extack)
{
	const struct tern_devlink *priv = devlink_health_reporter_priv(reporter);
	struct tern_dev *tdev = priv->tdev;
	int err = tern_recover(tdev);

	if (err)
		dev_err(&tdev->pdev->dev, "the card does not recover: %d\n", err);
	else
		dev_info(&tdev->pdev->dev, "the card works again\n");
	return err;
}

static const struct devlink_health_reporter_ops tern_fw_fatal_ops = {
	.name = "fw_fatal",
	TERN_GRACEFUL_PERIOD(TERN_GRACE_MS)
	.recover = tern_fw_fatal_recover,
	.dump = tern_fw_fatal_dump,
};

static void tern_fatal_work(struct work_struct *work)
{
	struct tern_devlink *priv = container_of(work, struct tern_devlink, fatal_work);
	const char *failure = READ_ONCE(priv->tdev->failure);

	mutex_lock(&priv->lock);
	if (priv->registered && failure)
		devlink_health_report(priv->fw_fatal, failure, NULL);
	mutex_unlock(&priv->lock);
}

/* The card has failed. The caller may hold the RTNL, and a report takes locks of devlink. */
void tern_devlink_card_failed(struct tern_dev *tdev)
{
	struct tern_devlink *priv = devlink_priv(tdev->devlink);

	schedule_work(&priv->fatal_work);
}

/* Ends what was reported, because the card is started anew after a suspend or a reset. */
void tern_devlink_card_works(struct tern_dev *tdev)
{
	struct tern_devlink *priv = devlink_priv(tdev->devlink);

	devlink_health_reporter_state_update(priv->fw_fatal, DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
}

/* ---- queues of the net_device --------------------------------------------------------------- */

static void tern_diagnose_queue(struct devlink_fmsg *fmsg, const struct tern_eth_queue *q)
{
	devlink_fmsg_obj_nest_start(fmsg);
	devlink_fmsg_u32_pair_put(fmsg, "queue", q->index);
	devlink_fmsg_bool_pair_put(fmsg, "open", q->open);
	devlink_fmsg_bool_pair_put(fmsg, "failed", READ_ONCE(q->failed));
	devlink_fmsg_u64_pair_put(fmsg, "restarts", q->restarts);
	devlink_fmsg_u32_pair_put(fmsg, "backoff_ms", jiffies_to_msecs(q->backoff));
	devlink_fmsg_u32_pair_put(fmsg, "qpn", q->qp_core.qpn);
	devlink_fmsg_u32_pair_put(fmsg, "tx_pi", READ_ONCE(q->tx.pi));
	devlink_fmsg_u32_pair_put(fmsg, "tx_ci", READ_ONCE(q->tx.ci));
	devlink_fmsg_u32_pair_put(fmsg, "rx_pi", READ_ONCE(q->rx.pi));
	devlink_fmsg_u32_pair_put(fmsg, "rx_ci", READ_ONCE(q->rx.ci));
	devlink_fmsg_obj_nest_end(fmsg);
}

static int tern_tx_diagnose(struct devlink_health_reporter *reporter, struct devlink_fmsg *fmsg,
			    struct netlink_ext_ack *extack)
{
	const struct tern_devlink *priv = devlink_health_reporter_priv(reporter);
	const struct tern_netdev *nd;
	u32 i;

	rtnl_lock();
	nd = priv->tdev->netdev ? netdev_priv(priv->tdev->netdev) : NULL;
	devlink_fmsg_arr_pair_nest_start(fmsg, "queues");
	for (i = 0; nd && i < nd->settings.queues; i++)
		tern_diagnose_queue(fmsg, &nd->queues[i]);
	devlink_fmsg_arr_pair_nest_end(fmsg);
	rtnl_unlock();
	return 0;
}

/* Puts the first queue in error, which then has to restart. */
static int tern_tx_test(struct devlink_health_reporter *reporter, struct netlink_ext_ack *extack)
{
	const struct tern_devlink *priv = devlink_health_reporter_priv(reporter);
	int err = -ENETDOWN;

	rtnl_lock();
	if (priv->tdev->netdev)
		err = tern_eth_break(netdev_priv(priv->tdev->netdev));
	rtnl_unlock();
	return err;
}

static const struct devlink_health_reporter_ops tern_tx_ops = {
	.name = "tx",
	.diagnose = tern_tx_diagnose,
	.test = tern_tx_test,
};

/*
 * Reports that queue @index failed; @works: its restart succeeded. The caller does not hold the
 * RTNL.
 */
void tern_devlink_queue_failed(struct tern_dev *tdev, u32 index, bool works)
{
	struct tern_devlink *priv = devlink_priv(tdev->devlink);
	char text[32];

	snprintf(text, sizeof(text), "queue %u failed", index);
	mutex_lock(&priv->lock);
	if (priv->registered)
		devlink_health_report(priv->tx, text, NULL);
	if (priv->registered && works)
		devlink_health_reporter_state_update(priv->tx,
						     DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
	mutex_unlock(&priv->lock);
}

/* Reports that all queues work after a restart that failed. The caller does not hold the RTNL. */
void tern_devlink_queues_work(struct tern_dev *tdev)
{
	struct tern_devlink *priv = devlink_priv(tdev->devlink);

	mutex_lock(&priv->lock);
	if (priv->registered)
		devlink_health_reporter_state_update(priv->tx,
						     DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
	mutex_unlock(&priv->lock);
}

/* ---- registration ------------------------------------------------------------------------ */

static int tern_reporters_create(struct tern_devlink *priv, struct devlink *devlink)
{
	priv->fw_fatal = tern_reporter_create(devlink, &tern_fw_fatal_ops, TERN_GRACE_MS, priv);
	if (IS_ERR(priv->fw_fatal))
		return PTR_ERR(priv->fw_fatal);
	priv->tx = tern_reporter_create(devlink, &tern_tx_ops, 0, priv);
	if (IS_ERR(priv->tx)) {
		devlink_health_reporter_destroy(priv->fw_fatal);
		return PTR_ERR(priv->tx);
	}
	return 0;
}

/* Call this before the card starts: its failure can be reported from then on. */
int tern_devlink_init(struct tern_dev *tdev)
{
	struct tern_devlink *priv;
	struct devlink *devlink;
	int err;

	devlink = devlink_alloc(&tern_devlink_ops, sizeof(*priv), &tdev->pdev->dev);
	if (!devlink)
		return -ENOMEM;
	priv = devlink_priv(devlink);
	priv->tdev = tdev;
	mutex_init(&priv->lock);
	INIT_WORK(&priv->fatal_work, tern_fatal_work);
	err = tern_reporters_create(priv, devlink);
	if (err) {
		devlink_free(devlink);
		return err;
	}
	tern_devlink_can_reload(devlink);
	tdev->devlink = devlink;
	return 0;
}

/* The card is down. */
void tern_devlink_exit(struct tern_dev *tdev)
{
	struct tern_devlink *priv = devlink_priv(tdev->devlink);

	cancel_work_sync(&priv->fatal_work);
	devlink_health_reporter_destroy(priv->tx);
	devlink_health_reporter_destroy(priv->fw_fatal);
	devlink_free(tdev->devlink);
}

static void tern_devlink_set_registered(struct tern_dev *tdev, bool registered)
{
	struct tern_devlink *priv = devlink_priv(tdev->devlink);

	mutex_lock(&priv->lock);
	priv->registered = registered;
	mutex_unlock(&priv->lock);
}

/* While the card is up. */
void tern_devlink_register(struct tern_dev *tdev)
{
	devlink_register(tdev->devlink);
	tern_devlink_set_registered(tdev, true);
	/* A failure before this was not reported. */
	if (tern_is_dead(tdev))
		tern_devlink_card_failed(tdev);
}

void tern_devlink_unregister(struct tern_dev *tdev)
{
	tern_devlink_set_registered(tdev, false);
	devlink_unregister(tdev->devlink);
}
