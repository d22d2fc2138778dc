/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The RAM blocks that other hosts can read. Without QEMU's headers. */
#ifndef TERN_SHARED_RAM_H
#define TERN_SHARED_RAM_H

#include "qemu/engine/engine.h"

enum { TERN_MAX_SHARED_RAM = 8 };

struct tern_shared_ram {
	/* indexed by their number on the wire */
	struct {
		const char *host;
		uint64_t size;
	} blocks[TERN_MAX_SHARED_RAM];
	size_t count;
};

/* Before the engine's thread starts; there is room. */
static inline void tern_shared_ram_add(struct tern_shared_ram *ram, const char *host, uint64_t size)
{
	ram->blocks[ram->count].host = host;
	ram->blocks[ram->count].size = size;
	ram->count++;
}

/*
 * Removes the block at @host, so that tern_shared_ram_find() does not return it for other RAM that
 * is mapped at the same address later. May be called by any thread; call before @host is unmapped.
 */
static inline void tern_shared_ram_remove(struct tern_shared_ram *ram, const void *host)
{
	for (size_t i = 0; i < ram->count; i++) {
		if (ram->blocks[i].host == host)
			__atomic_store_n(&ram->blocks[i].size, 0, __ATOMIC_RELAXED);
	}
}

/* Returns false if the @size bytes at @at are not in one block. */
static inline bool tern_shared_ram_find(const struct tern_shared_ram *ram, const char *at,
                                        size_t size, struct tern_ram_range *range)
{
	for (size_t i = 0; i < ram->count; i++) {
		const uint64_t end = __atomic_load_n(&ram->blocks[i].size, __ATOMIC_RELAXED);
		const uint64_t offset = (uintptr_t)at - (uintptr_t)ram->blocks[i].host;

		if (offset >= end || size > end - offset)
			continue;
		range->block = (uint32_t)i;
		range->size = (uint32_t)size;
		range->offset = offset;
		return true;
	}
	return false;
}

#endif
