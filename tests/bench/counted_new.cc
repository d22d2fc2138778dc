// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/counted_new.h"

#include <cstdlib>
#include <new>

namespace {
uint64_t count = 0;
}

void *operator new(size_t size)
{
	count++;
	if (void *const memory = std::malloc(size))
		return memory;
	throw std::bad_alloc();
}

void *operator new(size_t size, std::align_val_t align)
{
	count++;
	const auto alignment = static_cast<size_t>(align);
	if (void *const memory =
	            std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1)))
		return memory;
	throw std::bad_alloc();
}

void operator delete(void *memory) noexcept
{
	std::free(memory);
}

void operator delete(void *memory, size_t) noexcept
{
	std::free(memory);
}

void operator delete(void *memory, std::align_val_t) noexcept
{
	std::free(memory);
}

void operator delete(void *memory, size_t, std::align_val_t) noexcept
{
	std::free(memory);
}

uint64_t tern::bench::allocations()
{
	return count;
}
