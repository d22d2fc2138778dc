// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ownership without operator new, which needs libstdc++ and throws. */
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

template <class T>
using Owned = std::unique_ptr<T, Destroy>;

/** Allocates a value-initialized T; null when memory is short. */
template <class T>
Owned<T> make_owned()
{
	void *p = std::malloc(sizeof(T));
	return Owned<T>(p ? new (p) T() : nullptr);
}

} // namespace tern::provider
