/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <ctime>

namespace tern {

/** The monotonic clock, ns. */
inline uint64_t monotonic_ns()
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
	       static_cast<uint64_t>(now.tv_nsec);
}

} // namespace tern
