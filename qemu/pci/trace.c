/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's trace events as QEMU's own, for `-trace 'tern_*'` and the monitor's trace-event. They
 * are written to QEMU's log, as by the log backend, which is Debian's.
 */
#include "qemu/osdep.h"

#include "qemu/error-report.h"
#include "qemu/log.h"
#include "trace/control.h"

#include "qemu/engine/engine.h"
#include "qemu/pci/qemu_compat.h"
#include "qemu/pci/trace.h"

/* One more, which ends the group. */
static TraceEvent *group[TERN_TRACE_EVENTS + 1];

void tern_trace(const char *card, uint32_t engine, const char *event, const char *text)
{
	if (message_with_timestamp) {
		const int64_t now = g_get_real_time();

		qemu_log("%d@%" PRId64 ".%06d:%s %s engine %u %s\n", qemu_get_thread_id(),
		         now / G_USEC_PER_SEC, (int)(now % G_USEC_PER_SEC), event, card, engine,
		         text);
	} else {
		qemu_log("%s %s engine %u %s\n", event, card, engine, text);
	}
}

static void tern_register_trace_events(void)
{
	for (int i = 0; i < TERN_TRACE_EVENTS; i++) {
		const TraceEvent event = {
		        TERN_TRACE_EVENT_NO_VCPU.name = tern_trace_events[i].name,
		        .sstate = true,
		        .dstate = &tern_trace_events[i].enabled,
		};

		group[i] = g_memdup2(&event, sizeof(event));
	}
	trace_event_register_group(group);
}

trace_init(tern_register_trace_events)
