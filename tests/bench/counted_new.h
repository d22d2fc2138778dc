/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

namespace tern::bench {

/* Of a program that is linked with this, which has one thread. */

/** The number of calls of operator new so far. */
uint64_t allocations();

/** The memory that operator new has allocated and operator delete has not freed, in bytes. */
int64_t allocated_bytes();

} // namespace tern::bench
