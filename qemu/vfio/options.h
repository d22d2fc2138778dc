/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <string>

#include "qemu/vfio/card.h"

namespace tern::vfio {

struct Options {
	std::string socket;
	Card::Config card;
	bool help = false;
};

extern const char *const kUsage;

/** Returns what is wrong with the arguments, in a line, or empty. */
std::string parse_options(int argc, char **argv, Options &options);

} // namespace tern::vfio
