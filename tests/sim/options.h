/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <string>

namespace tern::sim {

/** What the command line says: --seed N, --seeds N. */
struct Options {
	uint64_t seed = 1;
	uint64_t seeds = 20;
	std::string program;
};

const Options &options();

/** The command that repeats the running test with @seed alone. */
std::string replay(uint64_t seed);

} // namespace tern::sim
