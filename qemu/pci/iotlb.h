/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's translation cache (PCIe's ATC): pages that its DMA has reached behind an IOMMU,
 * and where in this process they are. QEMU's IOMMUs translate under the BQL; the engine's thread
 * reaches what is here without it.
 *
 * What an IOMMU has translated is kept only while the guest has ATS enabled: it then names
 * to the device each page that is to be forgotten. (Without, this QEMU would not tell of all that
 * the IOMMU's own cache forgets: see hw/i386/intel_iommu.c, vtd_sync_shadow_page_table().)
 * Everything is forgotten when the memory map changes, be it that RAM goes, that the guest turns
 * the IOMMU on or off, or that it takes bus mastering from the card.
 *
 * A page has been forgotten when no access to it is under way any more.
 */
#ifndef TERN_IOTLB_H
#define TERN_IOTLB_H

#include "exec/memory.h"

enum {
	TERN_IOTLB_PAGE_SHIFT = 12,
	TERN_IOTLB_PAGE_SIZE = 1 << TERN_IOTLB_PAGE_SHIFT,
	TERN_IOTLB_ENTRIES = 4096,
};

struct tern_iotlb {
	MemoryListener listener;
	IOMMUNotifier notifier;
	/* Under the BQL: how many sections of the address space an IOMMU translates... */
	unsigned translated;
	bool notified; /* ... whether it tells what to forget... */
	bool ats;      /* ... and whether the guest lets it. */
	/* Odd while the engine's thread accesses memory through entries. */
	unsigned sequence;
	/*
	 * By the last bits of the page's number. The engine's thread fills them, whoever
	 * holds the BQL empties them.
	 */
	struct {
		uint64_t tag; /* IOVA of the page, and for what it may be used; 0: empty */
		char *ram;
		MemoryRegion *mr;
	} entries[TERN_IOTLB_ENTRIES];
};

/* Under the BQL, before the engine's thread begins and after it has ended. */
void tern_iotlb_init(struct tern_iotlb *iotlb, AddressSpace *as);
void tern_iotlb_exit(struct tern_iotlb *iotlb);

/* Under the BQL: as the guest sets it in the ATS capability. */
void tern_iotlb_set_ats(struct tern_iotlb *iotlb, bool enabled);

/*
 * For the engine's thread. What tern_iotlb_find() finds is valid between the first two, between
 * which the thread must not wait for the BQL, or while it holds the BQL.
 */
void tern_iotlb_enter(struct tern_iotlb *iotlb);
void tern_iotlb_leave(struct tern_iotlb *iotlb);
/* The RAM at @iova, with as much of *@size as is in the same page, and its region; or NULL. */
void *tern_iotlb_find(struct tern_iotlb *iotlb, uint64_t iova, bool is_write, hwaddr *size,
                      MemoryRegion **mr);

/* For the engine's thread, under the BQL: whether pages may be kept, and one that was found. */
bool tern_iotlb_keeps(const struct tern_iotlb *iotlb);
void tern_iotlb_fill(struct tern_iotlb *iotlb, uint64_t page, bool is_write, void *ram,
                     MemoryRegion *mr);

#endif
