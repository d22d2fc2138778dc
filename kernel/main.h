/* SPDX-License-Identifier: GPL-2.0 */
/* What the top layer has besides PCI: the health check and devlink. */
#ifndef TERN_MAIN_H
#define TERN_MAIN_H

struct tern_dev;

/* health.c */
void tern_health_init(struct tern_dev *tdev);
void tern_health_start(struct tern_dev *tdev);
void tern_health_stop(struct tern_dev *tdev);

/* devlink.c */
int tern_devlink_init(struct tern_dev *tdev);
void tern_devlink_exit(struct tern_dev *tdev);

#endif
