/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

namespace tern::bench {

/** How often operator new was called so far, in a program that is linked with this. */
uint64_t allocations();

} // namespace tern::bench
