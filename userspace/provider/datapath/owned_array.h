// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Arrays of queues, from the heap or from the application's allocators. */
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>

#include <infiniband/verbs.h>

namespace tern::provider {

/** The contents of an array: the resource type that the application's allocators receive. */
enum class ArrayType : uint64_t {
	kSendRequests = 1,
	kRecvRequests = 2,
	kSharedRecvRequests = 3,
	kTagOperations = 4,
	kTagEntries = 5,
};

/** The allocators that the application gave to a parent domain. */
class Allocator {
public:
	Allocator(ibv_pd *domain, const ibv_parent_domain_init_attr &attr)
	        : domain_(domain), alloc_(attr.alloc), free_(attr.free), context_(attr.pd_context)
	{
	}

	/** Returns null if memory is short, IBV_ALLOCATOR_USE_DEFAULT for an array on the heap. */
	void *allocate(size_t size, size_t alignment, ArrayType type) const
	{
		return alloc_(domain_, context_, size, alignment, static_cast<uint64_t>(type));
	}

	void release(void *p, ArrayType type) const
	{
		free_(domain_, context_, p, static_cast<uint64_t>(type));
	}

private:
	ibv_pd *domain_;
	decltype(ibv_parent_domain_init_attr::alloc) alloc_;
	decltype(ibv_parent_domain_init_attr::free) free_;
	void *context_;
};

struct ReleaseArray {
	const Allocator *allocator = nullptr; /* null: the heap */
	ArrayType type{};

	void operator()(void *p) const
	{
		if (allocator)
			allocator->release(p, type);
		else
			std::free(p);
	}
};

template <class T>
using OwnedArray = std::unique_ptr<T[], ReleaseArray>;

/**
 * Allocates @n zeroed elements of a trivial T; null when memory is short. @allocator may be null,
 * and must outlive the array.
 */
template <class T>
requires std::is_trivially_destructible_v<T> OwnedArray<T>
make_owned_array(size_t n, ArrayType type, const Allocator *allocator)
{
	void *p = allocator ? allocator->allocate(n * sizeof(T), alignof(T), type)
	                    : IBV_ALLOCATOR_USE_DEFAULT;

	if (p == IBV_ALLOCATOR_USE_DEFAULT)
		return OwnedArray<T>(static_cast<T *>(std::calloc(n, sizeof(T))));
	if (p)
		std::memset(p, 0, n * sizeof(T));
	return OwnedArray<T>(static_cast<T *>(p), ReleaseArray{allocator, type});
}

} // namespace tern::provider
