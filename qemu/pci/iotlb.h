/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's translation cache (the ATC of PCIe): pages that its DMA has accessed behind an IOMMU,
 * with their host addresses. QEMU's IOMMUs translate under the BQL; the engine's thread uses cached
 * translations without it.
 *
 * A translation is cached only while the guest has ATS enabled: only then does the IOMMU send the
 * device an invalidation for each page. (Without ATS this QEMU does not report everything the
 * IOMMU's own cache drops: see hw/i386/intel_iommu.c, vtd_sync_shadow_page_table().) All entries
 * are invalidated when the memory map changes: RAM is removed, the guest turns the IOMMU on or off,
 * or it clears bus mastering.
 *
 * An invalidation returns only when no access through the invalidated entries is in progress.
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
	/* Protected by the BQL: sections of the address space that an IOMMU translates, */
	unsigned translated;
	bool notified; /* whether the IOMMU sends invalidations, */
	bool ats;      /* and whether the guest has enabled ATS. */
	/* Odd while the engine's thread accesses memory through entries. */
	unsigned sequence;
	/*
	 * Direct-mapped by page number. The engine's thread fills entries under the BQL; any thread
	 * with the BQL clears them.
	 */
	struct {
		uint64_t tag; /* IOVA of the page and IOMMU_RO, IOMMU_WO; 0: empty */
		char *ram;
		MemoryRegion *mr;
	} entries[TERN_IOTLB_ENTRIES];
};

/* Under the BQL, before the engine's thread starts and after it has ended. */
void tern_iotlb_init(struct tern_iotlb *iotlb, AddressSpace *as);
void tern_iotlb_exit(struct tern_iotlb *iotlb);

/* Under the BQL: the guest has written the ATS capability. */
void tern_iotlb_set_ats(struct tern_iotlb *iotlb, bool enabled);

/*
 * For the engine's thread. A result of tern_iotlb_find() is valid between enter and leave, or while
 * the thread holds the BQL. Between enter and leave the thread must not wait for the BQL.
 */
void tern_iotlb_enter(struct tern_iotlb *iotlb);
void tern_iotlb_leave(struct tern_iotlb *iotlb);
/* Returns the RAM at @iova, limits *@size to that page and sets its region; NULL if not cached. */
void *tern_iotlb_find(struct tern_iotlb *iotlb, uint64_t iova, bool is_write, hwaddr *size,
                      MemoryRegion **mr);

/* For the engine's thread, under the BQL: whether pages may be cached; caches one page. */
bool tern_iotlb_may_fill(const struct tern_iotlb *iotlb);
void tern_iotlb_fill(struct tern_iotlb *iotlb, uint64_t page, bool is_write, void *ram,
                     MemoryRegion *mr);

#endif
