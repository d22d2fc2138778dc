// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ownership without operator new, which would need libstdc++ and an exception. */
#pragma once

#include <cstdlib>
#include <memory>
#include <new>

namespace tern::provider {

struct Destroy {
	template <class T>
	void operator()(T *p) const
	{
		p->~T();
		std::free(p);
	}
};

struct Free {
	void operator()(void *p) const { std::free(p); }
};

template <class T>
using Owned = std::unique_ptr<T, Destroy>;
template <class T>
using OwnedArray = std::unique_ptr<T[], Free>;

/** A value-initialized T, or null when there is no memory. */
template <class T>
Owned<T> make_owned()
{
	void *p = std::malloc(sizeof(T));
	return Owned<T>(p ? new (p) T() : nullptr);
}

/** @n zeroed elements of a trivial T, or null when there is no memory. */
template <class T>
requires std::is_trivially_destructible_v<T> OwnedArray<T> make_owned_array(size_t n)
{
	return OwnedArray<T>(static_cast<T *>(std::calloc(n, sizeof(T))));
}

} // namespace tern::provider
