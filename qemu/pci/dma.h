/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's DMA into the guest's memory, for the engine's thread. Reaches RAM
 * and nothing else: an address that is a device's register fails instead of
 * calling that device (maybe this one) from the wrong thread.
 */
#ifndef TERN_DMA_H
#define TERN_DMA_H

#include "hw/pci/pci.h"

#include "qemu/pci/engine.h"
#include "qemu/pci/iotlb.h"

enum { TERN_DMA_MAX_SHARED = 8 };

struct tern_dma {
	PCIDevice *pci;
	/*
	 * An IOMMU reports a fault by an interrupt and may change the memory map when it
	 * translates. Both want the BQL, and it has to be taken before the IOMMU's own lock.
	 * So what has been translated is kept here.
	 */
	bool behind_iommu;
	struct tern_iotlb iotlb;
	/* RAM that the engine shares with other hosts, by its number there */
	struct {
		const char *host;
		uint64_t size;
	} shared[TERN_DMA_MAX_SHARED];
	size_t shared_count;
	/* Of the engine's thread: tern_dma_hold() has done what each access would do. Meanwhile
	 * the RAM that was reached last, to read and to write. */
	bool held;
	struct tern_dma_window {
		uint64_t iova;
		uint64_t size;
		char *ram;
		MemoryRegion *mr;
	} windows[2];
};

/* Under the BQL, before the engine's thread begins and after it has ended. */
void tern_dma_init(struct tern_dma *dma, PCIDevice *pci);
void tern_dma_exit(struct tern_dma *dma);
/* Under the BQL, when the machine is complete: at reset. */
void tern_dma_reset(struct tern_dma *dma);
/* Under the BQL, when the configuration space has been written. */
void tern_dma_configured(struct tern_dma *dma);

/* Offers the machine's RAM to @engine, which is not connected yet. */
void tern_dma_share_ram(struct tern_dma *dma, struct tern_engine *engine);
/* As dma_find_shared() of struct tern_engine_ops. */
size_t tern_dma_find_shared(struct tern_dma *dma, uint64_t from, size_t size,
                            struct tern_ram_range *ranges, size_t room);

/* Around many accesses, none of which waits for anybody: the memory map as a whole, which they
 * look at, stays until tern_dma_release(). Not behind an IOMMU, where an access may wait. */
void tern_dma_hold(struct tern_dma *dma);
void tern_dma_release(struct tern_dma *dma);

bool tern_dma_read(struct tern_dma *dma, uint64_t from, void *to, size_t size);
bool tern_dma_write(struct tern_dma *dma, uint64_t to, const void *from, size_t size);
/* One store, after all earlier ones; @to is 8-byte aligned. */
bool tern_dma_store64(struct tern_dma *dma, uint64_t to, uint64_t value);
/* One load, before all later ones; @from is 4-byte aligned. */
bool tern_dma_load32(struct tern_dma *dma, uint64_t from, uint32_t *value);

#endif
