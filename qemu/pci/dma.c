/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/osdep.h"

#include "exec/address-spaces.h"
#include "exec/memory.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"

#include "qemu/pci/dma.h"

struct access {
	AddressSpace *as;
	MemTxAttrs attrs;
	bool locked;
};

static struct access begin(struct tern_dma *dma)
{
	struct access access = {
	        .as = pci_get_address_space(dma->pci),
	        .attrs = {.memory = 1, .requester_id = pci_requester_id(dma->pci)},
	        .locked = qatomic_read(&dma->behind_iommu),
	};

	if (access.locked)
		qemu_mutex_lock_iothread();
	rcu_read_lock();
	return access;
}

static void end(const struct access *access)
{
	rcu_read_unlock();
	if (access->locked)
		qemu_mutex_unlock_iothread();
}

/* Where the RAM at @iova is and how much of *@size is there; NULL when it is not RAM. */
static void *translate(const struct access *access, uint64_t iova, hwaddr *size, bool is_write,
                       MemoryRegion **mr)
{
	hwaddr offset;

	*mr = address_space_translate(access->as, iova, &offset, size, is_write, access->attrs);
	if (!memory_access_is_direct(*mr, is_write) || !*size)
		return NULL;
	return (char *)memory_region_get_ram_ptr(*mr) + offset;
}

/*
 * Tells the migration, the display and the code translator that RAM changed. Only
 * unmapping does all of that, so this takes the reference that mapping would have
 * taken. (Mapping itself could end in a bounce buffer if the map changed just now.)
 */
static void written(const struct access *access, MemoryRegion *mr, void *ram, hwaddr size)
{
	memory_region_ref(mr);
	address_space_unmap(access->as, ram, size, true, size);
}

static bool in_range(uint64_t iova, size_t size)
{
	return iova <= UINT64_MAX - size;
}

bool tern_dma_read(struct tern_dma *dma, uint64_t from, void *to, size_t size)
{
	if (!in_range(from, size))
		return false;

	struct access access = begin(dma);
	while (size) {
		hwaddr part = size;
		MemoryRegion *mr;
		void *ram = translate(&access, from, &part, false, &mr);

		if (!ram)
			break;
		memcpy(to, ram, part);
		from += part;
		to += part;
		size -= part;
	}
	end(&access);
	return !size;
}

bool tern_dma_write(struct tern_dma *dma, uint64_t to, const void *from, size_t size)
{
	if (!in_range(to, size))
		return false;

	struct access access = begin(dma);
	while (size) {
		hwaddr part = size;
		MemoryRegion *mr;
		void *ram = translate(&access, to, &part, true, &mr);

		if (!ram)
			break;
		memcpy(ram, from, part);
		written(&access, mr, ram, part);
		from += part;
		to += part;
		size -= part;
	}
	end(&access);
	return !size;
}

bool tern_dma_store64(struct tern_dma *dma, uint64_t to, uint64_t value)
{
	hwaddr size = sizeof(value);
	MemoryRegion *mr;

	if (to % sizeof(value))
		return false;

	struct access access = begin(dma);
	uint64_t *ram = translate(&access, to, &size, true, &mr);
	const bool reached = ram && size == sizeof(value);
	if (reached) {
		__atomic_store_n(ram, cpu_to_le64(value), __ATOMIC_RELEASE);
		written(&access, mr, ram, sizeof(value));
	}
	end(&access);
	return reached;
}

bool tern_dma_load32(struct tern_dma *dma, uint64_t from, uint32_t *value)
{
	hwaddr size = sizeof(*value);
	MemoryRegion *mr;

	if (from % sizeof(*value))
		return false;

	struct access access = begin(dma);
	const uint32_t *ram = translate(&access, from, &size, false, &mr);
	const bool reached = ram && size == sizeof(*value);
	if (reached)
		*value = le32_to_cpu(__atomic_load_n(ram, __ATOMIC_ACQUIRE));
	end(&access);
	return reached;
}

void tern_dma_reset(struct tern_dma *dma)
{
	qatomic_set(&dma->behind_iommu,
	            pci_device_iommu_address_space(dma->pci) != &address_space_memory);
}
