/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERN_QUERY_H
#define TERN_QUERY_H

#include "qemu/osdep.h"

#include "qom/object.h"

#include "qemu/pci/qemu_compat.h"

#define TYPE_TERN "tern"

/* All QPs. */
#define TERN_ALL_QPS (-1)

/* Returns the state of a realized card with that of QP @qpn or of all QPs, which the caller frees.
 * May drop the BQL meanwhile. Returns NULL and sets @errp if the card is being removed. Defined in
 * device.c. */
QDict *tern_device_state(Object *card, int64_t qpn, Error **errp);

/* Gives the class the property "state": what query-tern returns of a card. */
void tern_add_state_property(ObjectClass *class);

#endif
