// SPDX-License-Identifier: GPL-2.0
/* devlink dev info: driver, serial number and interface version. */
#include <linux/slab.h>
#include <net/devlink.h>

#include "compat.h"
#include "main.h"
#include "tern.h"

struct tern_devlink {
	struct tern_dev *tdev;
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

static const struct devlink_ops tern_devlink_ops = {
	.info_get = tern_devlink_info_get,
};

int tern_devlink_init(struct tern_dev *tdev)
{
	struct tern_devlink *priv;

	tdev->devlink = devlink_alloc(&tern_devlink_ops, sizeof(*priv), &tdev->pdev->dev);
	if (!tdev->devlink)
		return -ENOMEM;
	priv = devlink_priv(tdev->devlink);
	priv->tdev = tdev;
	devlink_register(tdev->devlink);
	return 0;
}

void tern_devlink_exit(struct tern_dev *tdev)
{
	devlink_unregister(tdev->devlink);
	devlink_free(tdev->devlink);
}
