// SPDX-License-Identifier: GPL-2.0-or-later
/* Two guests that do anything to their own cards and send anything to each other: registers,
 * commands, doorbells, rings and records, work requests, forged packets, and time that passes. */
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/world.h"

namespace {
constexpr unsigned kMaxActs = 64;
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	using namespace tern::sim;
	Rng rng(std::as_bytes(std::span(data, size)));
	World world(rng);
	Vandal first(world.node(0), rng, world.nodes());
	Vandal second(world.node(1), rng, world.nodes());
	for (unsigned i = 0; i < kMaxActs && !rng.exhausted(); i++) {
		(rng.chance(1, 2) ? first : second).act();
		world.pass(rng.chance(7, 8) ? 2'000 : 100'000);
	}
	world.pass(2'000'000);
	return 0;
}
