// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cerrno>

#include "abi34.h"
#include "owned.h"

namespace tern::provider {

/** A region as @make(VerbsMr &) makes it, which returns 0 or an errno; null with errno when that
 * fails. */
template <class Make>
ibv_mr *make_mr(Make make)
{
	Owned<abi34::VerbsMr> mr = make_owned<abi34::VerbsMr>();
	if (!mr) {
		errno = ENOMEM;
		return nullptr;
	}
	if (const int err = make(*mr)) {
		errno = err;
		return nullptr;
	}
	return &mr.release()->mr;
}

} // namespace tern::provider
