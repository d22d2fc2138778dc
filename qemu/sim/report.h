/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdio>
#include <string>

#include "qemu/sim/world.h"

namespace tern::sim {

/** Jain's index of fairness of the flows' rates: 1 if all are equal, 1/n if one has all. */
double fairness(const World &world);

/** For people: flows, queues and links with something to tell. */
void print_table(World &world, FILE *out);
/** All results and curves. The same scenario gives the same bytes. */
std::string to_json(World &world);
/** Draws rates.svg, queues.svg and cnps.svg into @folder by gnuplot. Returns why that failed, or
 * empty. */
std::string plot(World &world, const std::string &folder);

} // namespace tern::sim
