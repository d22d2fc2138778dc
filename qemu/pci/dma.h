/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's DMA into the guest's memory, for the engine's thread. Reaches RAM
 * and nothing else: an address that is a device's register fails instead of
 * calling that device (maybe this one) from the wrong thread.
 */
#ifndef TERN_DMA_H
#define TERN_DMA_H

#include "hw/pci/pci.h"

struct tern_dma {
	PCIDevice *pci;
	/*
	 * An IOMMU reports a fault by an interrupt and may change the memory map when it
	 * translates. Both want the BQL, and it has to be taken before the IOMMU's own lock.
	 */
	bool behind_iommu;
};

/* Under the BQL, when the machine is complete: at reset. */
void tern_dma_reset(struct tern_dma *dma);

bool tern_dma_read(struct tern_dma *dma, uint64_t from, void *to, size_t size);
bool tern_dma_write(struct tern_dma *dma, uint64_t to, const void *from, size_t size);
/* One store, after all earlier ones; @to is 8-byte aligned. */
bool tern_dma_store64(struct tern_dma *dma, uint64_t to, uint64_t value);
/* One load, before all later ones; @from is 4-byte aligned. */
bool tern_dma_load32(struct tern_dma *dma, uint64_t from, uint32_t *value);

#endif
