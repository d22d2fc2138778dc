/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERN_TRACE_H
#define TERN_TRACE_H

#include <stdint.h>

/* Writes a line of @event, which is enabled, to QEMU's log. From any thread. */
void tern_trace(const char *card, uint32_t engine, const char *event, const char *text);

#endif
