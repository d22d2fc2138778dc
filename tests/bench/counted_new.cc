// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/counted_new.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace {

uint64_t count = 0;
int64_t bytes = 0;

void *counted(void *memory)
{
	if (!memory)
		throw std::bad_alloc();
	count++;
	bytes += static_cast<int64_t>(malloc_usable_size(memory));
	return memory;
}

void release(void *memory)
{
	bytes -= static_cast<int64_t>(malloc_usable_size(memory));
	std::free(memory);
}

} // namespace

void *operator new(size_t size)
{
	return counted(std::malloc(size));
}

void *operator new(size_t size, std::align_val_t align)
{
	const auto alignment = static_cast<size_t>(align);
	return counted(std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1)));
}

void operator delete(void *memory) noexcept
{
	release(memory);
}

void operator delete(void *memory, size_t) noexcept
{
	release(memory);
}

void operator delete(void *memory, std::align_val_t) noexcept
{
	release(memory);
}

void operator delete(void *memory, size_t, std::align_val_t) noexcept
{
	release(memory);
}

uint64_t tern::bench::allocations()
{
	return count;
}

int64_t tern::bench::allocated_bytes()
{
	return bytes;
}
