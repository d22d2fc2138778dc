/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BARs: registers, doorbells and device memory. The BAR of MSI-X is QEMU's own. */
#include "qemu/osdep.h"

#include "qapi/error.h"
#include "qemu/host-utils.h"
#include "qemu/log.h"

#include "qemu/pci/device.h"

/* Guest errors logged between two resets, so that a guest cannot fill the log. */
enum { MAX_LOGGED_ERRORS = 100 };

/* The engine whose registers are at @addr of BAR 0, or NULL past the last engine. */
static struct tern_engine *engine_at(TernDevice *tern, hwaddr addr)
{
	return addr / TERN_REGS_SIZE < tern->engine_count
	               ? tern->engines[addr / TERN_REGS_SIZE].engine
	               : NULL;
}

/* The engine that owns doorbell page @page of BAR 2. */
static struct tern_engine *engine_of_page(TernDevice *tern, uint32_t page)
{
	return tern->engines[page % tern->engine_count].engine;
}

static bool may_log(TernDevice *tern)
{
	return tern->logged_errors < MAX_LOGGED_ERRORS && ++tern->logged_errors;
}

static void log_bad_access(TernDevice *tern, const char *what, hwaddr addr, unsigned size)
{
	if (may_log(tern)) {
		qemu_log_mask(LOG_GUEST_ERROR,
		              "tern: bad %s of %u bytes at offset 0x%" HWADDR_PRIx "\n", what, size,
		              addr);
	}
}

static uint64_t regs_read(void *opaque, hwaddr addr, unsigned size)
{
	TernDevice *tern = opaque;
	struct tern_engine *engine = engine_at(tern, addr);

	if (!engine || size != 4 || addr % 4) {
		log_bad_access(tern, "register read", addr, size);
		return ~0ull;
	}
	return tern_engine_read_register(engine, addr % TERN_REGS_SIZE);
}

static void regs_write(void *opaque, hwaddr addr, uint64_t value, unsigned size)
{
	TernDevice *tern = opaque;
	struct tern_engine *engine = engine_at(tern, addr);

	if (!engine || size != 4 || addr % 4) {
		log_bad_access(tern, "register write", addr, size);
		return;
	}
	tern_engine_write_register(engine, addr % TERN_REGS_SIZE, value);
}

static uint64_t doorbells_read(void *opaque, hwaddr addr, unsigned size)
{
	TernDevice *tern = opaque;

	if (size == 8 && addr % TERN_DB_PAGE_SIZE == TERN_DB_CLOCK)
		return tern_engine_clock(engine_of_page(tern, addr / TERN_DB_PAGE_SIZE));
	log_bad_access(tern, "doorbell read", addr, size);
	return ~0ull;
}

static void doorbells_write(void *opaque, hwaddr addr, uint64_t value, unsigned size)
{
	TernDevice *tern = opaque;
	const uint32_t page = addr / TERN_DB_PAGE_SIZE;

	if (size != 8 || addr % 8) {
		log_bad_access(tern, "doorbell write", addr, size);
		return;
	}
	tern_engine_doorbell(engine_of_page(tern, page), page / tern->engine_count,
	                     addr % TERN_DB_PAGE_SIZE, value);
}

/* The regions accept every access size and alignment, so that the handlers above can check them. */
static const MemoryRegionOps regs_ops = {
        .read = regs_read,
        .write = regs_write,
        .endianness = DEVICE_LITTLE_ENDIAN,
        .valid = {.min_access_size = 1, .max_access_size = 8, .unaligned = true},
        .impl = {.min_access_size = 1, .max_access_size = 8, .unaligned = true},
};

static const MemoryRegionOps doorbells_ops = {
        .read = doorbells_read,
        .write = doorbells_write,
        .endianness = DEVICE_LITTLE_ENDIAN,
        .valid = {.min_access_size = 1, .max_access_size = 8, .unaligned = true},
        .impl = {.min_access_size = 1, .max_access_size = 8, .unaligned = true},
};

void tern_init_bars(TernDevice *tern)
{
	PCIDevice *pci = PCI_DEVICE(tern);
	const uint64_t doorbells_size = (uint64_t)tern->doorbell_pages * TERN_DB_PAGE_SIZE;

	memory_region_init_io(&tern->regs, OBJECT(tern), &regs_ops, tern, "tern-regs",
	                      pow2ceil((uint64_t)tern->engine_count * TERN_REGS_SIZE));
	memory_region_init_io(&tern->doorbells, OBJECT(tern), &doorbells_ops, tern,
	                      "tern-doorbells", doorbells_size);
	/* A handler may drop the BQL while it waits, and another vCPU may then enter it. */
	tern->regs.disable_reentrancy_guard = true;
	tern->doorbells.disable_reentrancy_guard = true;

	pci_register_bar(pci, TERN_BAR_REGS, PCI_BASE_ADDRESS_SPACE_MEMORY, &tern->regs);
	pci_register_bar(pci, TERN_BAR_DOORBELLS,
	                 PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 |
	                         PCI_BASE_ADDRESS_MEM_PREFETCH,
	                 &tern->doorbells);
	if (tern->dm_size)
		pci_register_bar(pci, TERN_BAR_DM,
		                 PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_PREFETCH,
		                 &tern->device_memory);
}

/* The guest accesses device memory as RAM; the engine uses its host address. */
bool tern_init_device_memory(TernDevice *tern, Error **errp)
{
	Error *err = NULL;

	if (!tern->dm_size)
		return true;
	memory_region_init_ram_nomigrate(&tern->device_memory, OBJECT(tern), "tern-dm",
	                                 tern->dm_size, &err);
	error_propagate(errp, err);
	return !err;
}
