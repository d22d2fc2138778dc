// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cerrno>

#include "owned.h"

namespace tern::provider {

/**
 * Allocates a T, whose first member is the Ibv that libibverbs uses, and completes it with
 * @make(T &), which returns 0 or an errno. On failure frees it, sets errno and returns null.
 */
template <class Ibv, class T = Ibv, class Make>
Ibv *make_object(Make make)
{
	Owned<T> object = make_owned<T>();
	if (const int err = object ? make(*object) : ENOMEM) {
		errno = err;
		return nullptr;
	}
	return reinterpret_cast<Ibv *>(object.release());
}

/** Frees @object if @err, the result of destroying it in the kernel, is 0. Returns @err. */
template <class T>
int free_object(int err, T *object)
{
	if (!err)
		Owned<T>{object};
	return err;
}

} // namespace tern::provider
