/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/node.h"
#include "tests/sim/rng.h"
#include "tests/support/host.h"

namespace tern::sim {

/** A registered buffer and what it must hold. */
struct Area {
	/** @may_page: its pages may come on demand; then @node knows of it. */
	Area(Node &node, Rng &rng, uint32_t pd, uint64_t size, uint8_t access, bool random,
	     bool may_page = true);
	~Area();
	Area(const Area &) = delete;
	Area &operator=(const Area &) = delete;

	/** Empty when memory is as the model says. */
	std::string differs(const char *name) const;

	test::HostMr mr;
	std::vector<std::byte> model;
	bool registered = true;
	uint64_t used = 0; /* for those that hand out each byte once */

private:
	struct Paging {
		bool on_demand;
	};
	Area(Node &node, Rng &rng, uint32_t pd, uint64_t size, uint8_t access, bool random,
	     Paging paging);

	Node &node_;
};

} // namespace tern::sim
