/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERN_QUERY_H
#define TERN_QUERY_H

#include "qemu/osdep.h"

#include "qom/object.h"

/* Gives the class the property "state": what query-tern returns of a card. */
void tern_add_state_property(ObjectClass *class);

#endif
