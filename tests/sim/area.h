/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/rng.h"
#include "tests/support/host.h"

namespace tern::sim {

/** A registered buffer and what it must hold. */
struct Area {
	Area(test::Driver &driver, Rng &rng, uint32_t pd, uint64_t size, uint8_t access,
	     bool random);

	/** Empty when memory is as the model says. */
	std::string differs(const char *name) const;

	test::HostMr mr;
	std::vector<std::byte> model;
	bool registered = true;
	uint64_t used = 0; /* for those that hand out each byte once */
};

} // namespace tern::sim
