/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/osdep.h"

#include "exec/memory.h"
#include "hw/i386/intel_iommu.h"
#include "qapi/error.h"

#include "qemu/pci/iotlb.h"

enum { PERMISSIONS = TERN_IOTLB_PAGE_SIZE - 1 };

static uint64_t permission(bool is_write)
{
	return is_write ? IOMMU_WO : IOMMU_RO;
}

static size_t slot_of(uint64_t iova)
{
	return (iova >> TERN_IOTLB_PAGE_SHIFT) % TERN_IOTLB_ENTRIES;
}

/* ---- the engine's thread ----------------------------------------------------- */

void tern_iotlb_enter(struct tern_iotlb *iotlb)
{
	qatomic_set(&iotlb->sequence, iotlb->sequence + 1);
	/* Either this thread sees the empty entry, or the thread that cleared it sees the odd
	 * number. */
	smp_mb();
}

void tern_iotlb_leave(struct tern_iotlb *iotlb)
{
	qatomic_store_release(&iotlb->sequence, iotlb->sequence + 1);
}

void *tern_iotlb_find(struct tern_iotlb *iotlb, uint64_t iova, bool is_write, hwaddr *size,
                      MemoryRegion **mr)
{
	const size_t slot = slot_of(iova);
	const uint64_t tag = qatomic_read(&iotlb->entries[slot].tag);
	const uint64_t offset = iova % TERN_IOTLB_PAGE_SIZE;

	if ((tag & ~(uint64_t)PERMISSIONS) != iova - offset || !(tag & permission(is_write)))
		return NULL;
	*size = MIN(*size, TERN_IOTLB_PAGE_SIZE - offset);
	*mr = iotlb->entries[slot].mr;
	return iotlb->entries[slot].ram + offset;
}

bool tern_iotlb_may_fill(const struct tern_iotlb *iotlb)
{
	return !iotlb->translated || (iotlb->notified && iotlb->ats);
}

void tern_iotlb_fill(struct tern_iotlb *iotlb, uint64_t page, bool is_write, void *ram,
                     MemoryRegion *mr)
{
	const size_t slot = slot_of(page);
	uint64_t tag = iotlb->entries[slot].tag;

	if ((tag & ~(uint64_t)PERMISSIONS) != page || iotlb->entries[slot].ram != ram)
		tag = page;
	iotlb->entries[slot].ram = ram;
	iotlb->entries[slot].mr = mr;
	qatomic_set(&iotlb->entries[slot].tag, tag | permission(is_write));
}

/* ---- threads that change the memory map, under the BQL ------------------------- */

/* Waits until the engine's thread has finished the accesses it may have started. */
static void wait_for_access(struct tern_iotlb *iotlb)
{
	unsigned sequence;

	smp_mb();
	sequence = qatomic_load_acquire(&iotlb->sequence);
	if (!(sequence % 2))
		return;
	while (qatomic_load_acquire(&iotlb->sequence) == sequence)
		sched_yield();
}

/* Invalidates the pages of @iova ... @iova + @mask. */
static void invalidate(struct tern_iotlb *iotlb, uint64_t iova, uint64_t mask)
{
	const uint64_t first = iova >> TERN_IOTLB_PAGE_SHIFT;
	const uint64_t more = ((iova + mask) >> TERN_IOTLB_PAGE_SHIFT) - first;
	bool cleared = false;

	for (uint64_t i = 0; i <= more && i < TERN_IOTLB_ENTRIES; i++) {
		uint64_t *tag = &iotlb->entries[(first + i) % TERN_IOTLB_ENTRIES].tag;

		if (!*tag || (*tag >> TERN_IOTLB_PAGE_SHIFT) - first > more)
			continue;
		qatomic_set(tag, 0);
		cleared = true;
	}
	if (cleared)
		wait_for_access(iotlb);
}

static void invalidate_all(struct tern_iotlb *iotlb)
{
	invalidate(iotlb, 0, UINT64_MAX);
}

static void invalidated(IOMMUNotifier *notifier, IOMMUTLBEntry *range)
{
	invalidate(container_of(notifier, struct tern_iotlb, notifier), range->iova, range->addr_mask);
}

/*
 * An address space has at most one IOMMU, possibly in several sections; Intel's starts at IOVA 0.
 * Other IOMMUs of this QEMU send no device IOTLB invalidations, or refuse the notifier.
 */
static bool register_notifier(struct tern_iotlb *iotlb, MemoryRegion *mr)
{
	if (!object_dynamic_cast(OBJECT(mr), TYPE_INTEL_IOMMU_MEMORY_REGION))
		return false;
	iommu_notifier_init(&iotlb->notifier, invalidated, IOMMU_NOTIFIER_DEVIOTLB_UNMAP, 0,
	                    HWADDR_MAX, 0);
	return memory_region_register_iommu_notifier(mr, &iotlb->notifier, NULL) == 0;
}

static void region_add(MemoryListener *listener, MemoryRegionSection *section)
{
	struct tern_iotlb *iotlb = container_of(listener, struct tern_iotlb, listener);

	if (memory_region_is_iommu(section->mr) && !iotlb->translated++)
		iotlb->notified = register_notifier(iotlb, section->mr);
}

static void region_del(MemoryListener *listener, MemoryRegionSection *section)
{
	struct tern_iotlb *iotlb = container_of(listener, struct tern_iotlb, listener);

	if (memory_region_is_iommu(section->mr) && !--iotlb->translated && iotlb->notified) {
		memory_region_unregister_iommu_notifier(section->mr, &iotlb->notifier);
		iotlb->notified = false;
	}
}

/* Called for each change of any address space, before removed RAM can be freed. */
static void map_changed(MemoryListener *listener)
{
	invalidate_all(container_of(listener, struct tern_iotlb, listener));
}

void tern_iotlb_set_ats(struct tern_iotlb *iotlb, bool enabled)
{
	iotlb->ats = enabled;
	if (!enabled)
		invalidate_all(iotlb);
}

void tern_iotlb_init(struct tern_iotlb *iotlb, AddressSpace *as)
{
	iotlb->listener = (MemoryListener){
	        .name = "tern-iotlb",
	        .region_add = region_add,
	        .region_del = region_del,
	        .commit = map_changed,
	};
	memory_listener_register(&iotlb->listener, as);
}

void tern_iotlb_exit(struct tern_iotlb *iotlb)
{
	memory_listener_unregister(&iotlb->listener);
}
