/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/osdep.h"

#include "exec/address-spaces.h"
#include "exec/cpu-common.h"
#include "exec/memory.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"

#include "qemu/pci/dma.h"

struct access {
	struct tern_dma *dma;
	AddressSpace *as;
	bool is_write;
	enum {
		DIRECT, /* no IOMMU */
		CACHED, /* by the IOTLB */
		LOCKED, /* by the IOMMU, under the BQL */
	} way;
};

static struct access begin_access(struct tern_dma *dma, bool is_write)
{
	struct access access = {
	        .dma = dma,
	        .as = pci_get_address_space(dma->pci),
	        .is_write = is_write,
	        .way = !dma->held && qatomic_read(&dma->behind_iommu) ? CACHED : DIRECT,
	};

	if (access.way == CACHED)
		tern_iotlb_enter(&dma->iotlb);
	rcu_read_lock();
	return access;
}

/* Takes the BQL for the rest of @access. */
static void take_bql(struct access *access)
{
	rcu_read_unlock();
	tern_iotlb_leave(&access->dma->iotlb);
	bql_lock();
	rcu_read_lock();
	access->way = LOCKED;
}

static void end_access(const struct access *access)
{
	rcu_read_unlock();
	if (access->way == CACHED)
		tern_iotlb_leave(&access->dma->iotlb);
	else if (access->way == LOCKED)
		bql_unlock();
}

/* Returns the RAM at @iova and sets *@size to the contiguous bytes there; NULL if it is not RAM. */
static void *translate(const struct access *access, uint64_t iova, hwaddr *size, MemoryRegion **mr)
{
	/* Only an IOMMU needs the requester id, and computing it costs more than the rest. */
	const MemTxAttrs attrs = {
	        .memory = 1,
	        .requester_id = access->way == DIRECT ? 0 : pci_requester_id(access->dma->pci),
	};
	hwaddr offset;

	*mr = address_space_translate(access->as, iova, &offset, size, access->is_write, attrs);
	if (!memory_access_is_direct(*mr, access->is_write, attrs) || !*size)
		return NULL;
	return (char *)memory_region_get_ram_ptr(*mr) + offset;
}

/* As translate(), for the whole contiguous range, which is cached until tern_dma_release(). */
static void *find_in_window(struct access *access, uint64_t iova, hwaddr *size, MemoryRegion **mr)
{
	struct tern_dma_window *window = &access->dma->windows[access->is_write];

	if (iova - window->iova >= window->size) {
		hwaddr there = UINT64_MAX - iova;
		char *ram = translate(access, iova, &there, mr);

		if (!ram)
			return NULL;
		*window = (struct tern_dma_window){iova, there, ram, *mr};
	}
	const uint64_t offset = iova - window->iova;

	*size = MIN(*size, window->size - offset);
	*mr = window->mr;
	return window->ram + offset;
}

/* Adds the page of @iova to the IOTLB if all of it is RAM. The IOMMU has just translated it. */
static void cache_page(const struct access *access, uint64_t iova)
{
	const uint64_t page = iova & ~(uint64_t)(TERN_IOTLB_PAGE_SIZE - 1);
	hwaddr size = TERN_IOTLB_PAGE_SIZE;
	MemoryRegion *mr;
	void *ram;

	if (!tern_iotlb_may_fill(&access->dma->iotlb))
		return;
	ram = translate(access, page, &size, &mr);
	if (ram && size == TERN_IOTLB_PAGE_SIZE)
		tern_iotlb_fill(&access->dma->iotlb, page, access->is_write, ram, mr);
}

/* As translate(), from the window or the IOTLB where possible. */
static void *access_ram(struct access *access, uint64_t iova, hwaddr *size, MemoryRegion **mr)
{
	void *ram;

	if (access->dma->held)
		return find_in_window(access, iova, size, mr);
	if (access->way == DIRECT)
		return translate(access, iova, size, mr);
	ram = tern_iotlb_find(&access->dma->iotlb, iova, access->is_write, size, mr);
	if (ram)
		return ram;
	if (access->way == CACHED)
		take_bql(access);
	/* One page at a time, so that the IOTLB can hold each. */
	*size = MIN(*size, TERN_IOTLB_PAGE_SIZE - iova % TERN_IOTLB_PAGE_SIZE);
	ram = translate(access, iova, size, mr);
	if (ram)
		cache_page(access, iova);
	return ram;
}

/*
 * Marks RAM as dirty for migration and display, and invalidates translated code. Only unmapping
 * does all of that; unmapping a MemoryRegionCache does so without taking references, hence a cache
 * for just this range. (Mapping the range instead could return a bounce buffer if the memory map
 * changed meanwhile.)
 */
static void mark_written(MemoryRegion *mr, void *ram, hwaddr size)
{
	MemoryRegionCache place = {
	        .ptr = ram,
	        .xlat = (char *)ram - (char *)memory_region_get_ram_ptr(mr),
	        .len = size,
	        .mrs = {.mr = mr},
	        .is_write = true,
	};

	address_space_cache_invalidate(&place, 0, size);
}

void tern_dma_hold(struct tern_dma *dma)
{
	dma->held = !qatomic_read(&dma->behind_iommu);
	memset(dma->windows, 0, sizeof(dma->windows));
	if (dma->held)
		rcu_read_lock();
}

void tern_dma_release(struct tern_dma *dma)
{
	if (dma->held)
		rcu_read_unlock();
	dma->held = false;
}

static bool in_range(uint64_t iova, size_t size)
{
	return iova <= UINT64_MAX - size;
}

bool tern_dma_read(struct tern_dma *dma, uint64_t from, void *to, size_t size)
{
	if (!in_range(from, size))
		return false;

	struct access access = begin_access(dma, false);
	while (size) {
		hwaddr part = size;
		MemoryRegion *mr;
		void *ram = access_ram(&access, from, &part, &mr);

		if (!ram)
			break;
		memcpy(to, ram, part);
		from += part;
		to += part;
		size -= part;
	}
	end_access(&access);
	return !size;
}

bool tern_dma_write(struct tern_dma *dma, uint64_t to, const void *from, size_t size)
{
	if (!in_range(to, size))
		return false;

	struct access access = begin_access(dma, true);
	while (size) {
		hwaddr part = size;
		MemoryRegion *mr;
		void *ram = access_ram(&access, to, &part, &mr);

		if (!ram)
			break;
		memcpy(ram, from, part);
		mark_written(mr, ram, part);
		from += part;
		to += part;
		size -= part;
	}
	end_access(&access);
	return !size;
}

bool tern_dma_store64(struct tern_dma *dma, uint64_t to, uint64_t value)
{
	hwaddr size = sizeof(value);
	MemoryRegion *mr;

	if (to % sizeof(value))
		return false;

	struct access access = begin_access(dma, true);
	uint64_t *ram = access_ram(&access, to, &size, &mr);
	const bool reached = ram && size == sizeof(value);
	if (reached) {
		__atomic_store_n(ram, cpu_to_le64(value), __ATOMIC_RELEASE);
		mark_written(mr, ram, sizeof(value));
	}
	end_access(&access);
	return reached;
}

bool tern_dma_load32(struct tern_dma *dma, uint64_t from, uint32_t *value)
{
	hwaddr size = sizeof(*value);
	MemoryRegion *mr;

	if (from % sizeof(*value))
		return false;

	struct access access = begin_access(dma, false);
	const uint32_t *ram = access_ram(&access, from, &size, &mr);
	const bool reached = ram && size == sizeof(*value);
	if (reached)
		*value = le32_to_cpu(__atomic_load_n(ram, __ATOMIC_ACQUIRE));
	end_access(&access);
	return reached;
}

struct sharing {
	struct tern_dma *dma;
	struct tern_engine *engine;
};

static int share_block(RAMBlock *block, void *opaque)
{
	struct sharing *sharing = opaque;
	struct tern_dma *dma = sharing->dma;
	const uint64_t size = qemu_ram_get_used_length(block);
	const int fd = qemu_ram_get_fd(block);

	if (fd < 0 || !qemu_ram_is_shared(block) || dma->shared.count == TERN_MAX_SHARED_RAM)
		return 0;
	if (!tern_engine_share_ram(sharing->engine, fd, size)) {
		warn_report_once("tern: payload in the RAM block %s is copied, not lent: it needs "
		                 "memory-backend-memfd with share=on,seal=off",
		                 qemu_ram_get_idstr(block));
		return 0;
	}
	tern_shared_ram_add(&dma->shared, qemu_ram_get_host_addr(block), size);
	return 0;
}

/* It is unmapped only after an RCU grace period, when no access is under way. */
static void ram_removed(RAMBlockNotifier *notifier, void *host, size_t size, size_t max_size)
{
	tern_shared_ram_remove(&container_of(notifier, struct tern_dma, ram_notifier)->shared,
	                       host);
}

void tern_dma_share_ram(struct tern_dma *dma, struct tern_engine *engine)
{
	struct sharing sharing = {.dma = dma, .engine = engine};

	/* The seal against writing is for good and denies discarding, too. */
	if (ram_block_discard_disable(true))
		return;
	qemu_ram_foreach_block(share_block, &sharing);
	if (!dma->shared.count) {
		ram_block_discard_disable(false);
		return;
	}
	dma->ram_notifier.ram_block_removed = ram_removed;
	ram_block_notifier_add(&dma->ram_notifier);
}

/* Not behind an IOMMU: the guest could unmap the memory before the other host reads it. */
size_t tern_dma_find_shared(struct tern_dma *dma, uint64_t from, size_t size,
                            struct tern_ram_range *ranges, size_t room)
{
	size_t count = 0;

	if (!dma->shared.count || qatomic_read(&dma->behind_iommu) || !in_range(from, size))
		return 0;

	struct access access = begin_access(dma, false);
	while (size && count < room) {
		hwaddr part = size;
		MemoryRegion *mr;
		const char *ram = access_ram(&access, from, &part, &mr);

		if (!ram || !tern_shared_ram_find(&dma->shared, ram, part, &ranges[count]))
			break;
		count++;
		from += part;
		size -= part;
	}
	end_access(&access);
	return size ? 0 : count;
}

void tern_dma_init(struct tern_dma *dma, PCIDevice *pci)
{
	dma->pci = pci;
	tern_dma_reset(dma);
	tern_iotlb_init(&dma->iotlb, pci_get_address_space(pci));
}

void tern_dma_exit(struct tern_dma *dma)
{
	if (dma->shared.count)
		ram_block_notifier_remove(&dma->ram_notifier);
	tern_iotlb_exit(&dma->iotlb);
}

void tern_dma_reset(struct tern_dma *dma)
{
	pci_set_word(dma->pci->config + dma->pci->exp.ats_cap + PCI_ATS_CTRL, 0);
	tern_dma_configured(dma);
	qatomic_set(&dma->behind_iommu,
	            pci_device_iommu_address_space(dma->pci) != &address_space_memory);
}

void tern_dma_configured(struct tern_dma *dma)
{
	const PCIDevice *pci = dma->pci;

	const uint16_t control = pci_get_word(pci->config + pci->exp.ats_cap + PCI_ATS_CTRL);

	tern_iotlb_set_ats(&dma->iotlb, control & PCI_ATS_CTRL_ENABLE);
}
