/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's DMA into guest memory, called by the engine's thread. It accesses RAM only: an address
 * that belongs to a device register fails, because the access would call that device (possibly this
 * one) from the wrong thread.
 */
#ifndef TERN_DMA_H
#define TERN_DMA_H

#include "exec/ramlist.h"

#include "qemu/engine/engine.h"
#include "qemu/engine/shared_ram.h"
#include "qemu/pci/iotlb.h"
#include "qemu/pci/qemu_compat.h"

struct tern_dma {
	PCIDevice *pci;
	/*
	 * An IOMMU reports a fault by an interrupt and may change the memory map when it
	 * translates. Both need the BQL, which must be taken before the IOMMU's own lock. The IOTLB
	 * keeps translations so that most accesses need neither.
	 */
	bool behind_iommu;
	struct tern_iotlb iotlb;
	struct tern_shared_ram shared;
	RAMBlockNotifier ram_notifier; /* with shared RAM */
	/* Used by the engine's thread only. While held, RCU protects the memory map, and windows[]
	 * caches the RAM last read [0] and last written [1]. */
	bool held;
	struct tern_dma_window {
		uint64_t iova;
		uint64_t size;
		char *ram;
		MemoryRegion *mr;
	} windows[2];
};

/* Under the BQL, before the engine's thread starts and after it has ended. */
void tern_dma_init(struct tern_dma *dma, PCIDevice *pci);
void tern_dma_exit(struct tern_dma *dma);
/* Under the BQL, at reset, when the machine is complete. */
void tern_dma_reset(struct tern_dma *dma);
/* Under the BQL, after a write to the configuration space. */
void tern_dma_configured(struct tern_dma *dma);

/* Shares the machine's RAM through @engine, which is not connected yet. */
void tern_dma_share_ram(struct tern_dma *dma, struct tern_engine *engine);
/* As dma_find_shared() of struct tern_engine_ops. */
size_t tern_dma_find_shared(struct tern_dma *dma, uint64_t from, size_t size,
                            struct tern_ram_range *ranges, size_t room);

/* Brackets a series of accesses that do not block: the memory map stays valid until
 * tern_dma_release(). Has no effect behind an IOMMU, where an access may block. */
void tern_dma_hold(struct tern_dma *dma);
void tern_dma_release(struct tern_dma *dma);

bool tern_dma_read(struct tern_dma *dma, uint64_t from, void *to, size_t size);
bool tern_dma_write(struct tern_dma *dma, uint64_t to, const void *from, size_t size);
/* One store, ordered after all earlier writes; @to is 8-byte aligned. */
bool tern_dma_store64(struct tern_dma *dma, uint64_t to, uint64_t value);
/* One load, ordered before all later reads; @from is 4-byte aligned. */
bool tern_dma_load32(struct tern_dma *dma, uint64_t from, uint32_t *value);

#endif
