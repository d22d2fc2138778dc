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

template <class T>
using Owned = std::unique_ptr<T, Destroy>;

/** A value-initialized T, or null when there is no memory. */
template <class T>
Owned<T> make_owned()
{
	void *p = std::malloc(sizeof(T));
	return Owned<T>(p ? new (p) T() : nullptr);
}

} // namespace tern::provider
