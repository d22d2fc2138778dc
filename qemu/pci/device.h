/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERN_DEVICE_H
#define TERN_DEVICE_H

#include "qemu/osdep.h"

#include "net/net.h"
#include "qemu/thread.h"

#include "qemu/engine/engine.h"
#include "qemu/pci/dma.h"
#include "qemu/pci/qemu_compat.h"
#include "tern/tern_hw.h"

#define TYPE_TERN "tern"

OBJECT_DECLARE_SIMPLE_TYPE(TernDevice, TERN)

/* An engine and its thread. */
struct engine {
	struct TernDevice *tern;
	struct tern_dma dma;
	struct tern_engine *engine;
	QemuThread thread;
};

struct TernDevice {
	PCIDevice parent_obj;

	NICState *nic;
	NICConf conf;
	uint32_t engine_count;
	uint32_t vectors;
	uint32_t doorbell_pages;
	uint32_t speed;
	uint32_t dm_size;
	char *wire;
	bool link; /* value of the property "link" */

	MemoryRegion regs;
	MemoryRegion doorbells;
	MemoryRegion device_memory;

	struct engine engines[TERN_MAX_ENGINES];
	VMChangeStateEntry *vm_state;
	QEMUBH *interrupt_bh;
	QEMUBH *send_bh;
	QEMUBH *receive_bh;

	/* The net layer has not finished our last frame; it calls frame_sent() when it has. */
	bool sending;
	bool leaving; /* being unplugged: QEMU has removed the BARs */
	unsigned logged_errors;
};

#define for_each_engine(e, tern)                                                                   \
	for (struct engine *e = (tern)->engines; e < (tern)->engines + (tern)->engine_count; e++)

static inline bool tern_is_bus_master(PCIDevice *pci)
{
	return pci_get_word(pci->config + PCI_COMMAND) & PCI_COMMAND_MASTER;
}

/* Makes the device memory of @tern, if it has any. Returns false and sets @errp if it fails. */
bool tern_init_device_memory(TernDevice *tern, Error **errp);

/* Makes and registers the BARs of @tern, after its device memory. */
void tern_init_bars(TernDevice *tern);

#endif
