/* SPDX-License-Identifier: GPL-2.0 */
/* The top layer declares its lifecycle, health check, devlink and debugfs here. */
#ifndef TERN_MAIN_H
#define TERN_MAIN_H

#include <linux/types.h>

struct tern_dev;

/* lifecycle.c */
int tern_add(struct tern_dev *tdev);
void tern_del(struct tern_dev *tdev);
void tern_quiesce(struct tern_dev *tdev);
void tern_hold(struct tern_dev *tdev, u8 reason, const char *why);
int tern_release(struct tern_dev *tdev, u8 reason);
int tern_recover(struct tern_dev *tdev);

/* health.c */
void tern_health_init(struct tern_dev *tdev);
void tern_health_start(struct tern_dev *tdev);
void tern_health_stop(struct tern_dev *tdev);

/* devlink.c */
int tern_devlink_init(struct tern_dev *tdev);
void tern_devlink_exit(struct tern_dev *tdev);
void tern_devlink_register(struct tern_dev *tdev);
void tern_devlink_unregister(struct tern_dev *tdev);
void tern_devlink_card_failed(struct tern_dev *tdev);
void tern_devlink_card_works(struct tern_dev *tdev);
void tern_devlink_queue_failed(struct tern_dev *tdev, u32 index, bool works);
void tern_devlink_queues_work(struct tern_dev *tdev);

/* debugfs.c */
void tern_debugfs_init(void);
void tern_debugfs_exit(void);
void tern_debugfs_add(struct tern_dev *tdev);
void tern_debugfs_remove(struct tern_dev *tdev);

#endif
