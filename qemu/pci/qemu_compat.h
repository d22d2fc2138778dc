/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Differences between the QEMUs that the device builds for, 7.2 to 10.0. The rest of the code is
 * written for the newest.
 */
#ifndef TERN_QEMU_COMPAT_H
#define TERN_QEMU_COMPAT_H

#include "qemu/osdep.h"

#include "exec/memory.h"
#include "qemu/main-loop.h"

/* 8.0 split PCIDevice off from pci.h, 10.0 renamed sysemu/ and qapi/qmp/. */
#if QEMU_VERSION_MAJOR >= 10
#include "hw/pci/pci_device.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "system/runstate.h"
#include "system/system.h"
#else
#include "hw/pci/pci.h"
#include "qapi/qmp/qdict.h"
#include "qapi/qmp/qjson.h"
#include "qapi/qmp/qlist.h"
#include "qapi/qmp/qnum.h"
#include "sysemu/runstate.h"
#include "sysemu/sysemu.h"
#endif

#if QEMU_VERSION_MAJOR < 10

/* 9.0 renamed qemu_mutex_lock_iothread() and qemu_mutex_unlock_iothread(). */
static inline void bql_lock(void)
{
	qemu_mutex_lock_iothread();
}

static inline void bql_unlock(void)
{
	qemu_mutex_unlock_iothread();
}

/* 10.0 added the parameter attrs, because a debugger may write to ROM. */
#define memory_access_is_direct(mr, is_write, attrs) memory_access_is_direct(mr, is_write)

/* Since 9.2 the field has another name. */
static inline void device_class_set_legacy_reset(DeviceClass *dc, DeviceReset reset)
{
	dc->reset = reset;
}

/* Since 10.0 properties are constant, which they always were in fact, and the array has no end
 * mark. */
#define device_class_set_props(dc, props) device_class_set_props(dc, (Property *)(props))
#define TERN_PROPERTIES_END DEFINE_PROP_END_OF_LIST()

/* Until 8.1 a trace event could be enabled for single vCPUs. */
#define TERN_TRACE_EVENT_NO_VCPU .vcpu_id = TRACE_VCPU_EVENT_NONE,
#else
#define TERN_PROPERTIES_END
#define TERN_TRACE_EVENT_NO_VCPU
#endif

#endif
