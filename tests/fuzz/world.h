/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/sim/node.h"
#include "tests/sim/vandal.h"

namespace tern::sim {

/** Two hosts with cards on one wire, under the simulated clock. */
class World {
public:
	/** @rng: whether the wire takes payload lent, and soon has no room. */
	explicit World(Rng &rng)
	{
		LinkConfig link;
		link.borrow = rng.chance(1, 2) ? 500 : 0;
		link.bursts = 500;
		if (rng.chance(1, 2))
			link.queue = 2;
		for (const unsigned number : kNumbers)
			nodes().push_back(std::make_unique<Node>(
			        fabric_.loop, fabric_.rng.fork(), number, link,
			        [this, at = nodes().size()](const Link::Frame &frame,
			                                    const Link::Loan &loan) {
				        fabric_.forward(frame, loan, node(at));
			        }));
	}

	std::vector<std::unique_ptr<Node>> &nodes() { return fabric_.nodes; }
	Node &node(size_t at) { return *fabric_.nodes[at]; }

	/** Lets @ns pass. Aborts if a card does not come to rest. */
	void pass(uint64_t ns)
	{
		const uint64_t end = fabric_.loop.now() + ns;
		unsigned events = 0;
		fabric_.loop.run_until(end, [&] {
			if (events++ > kMaxEvents)
				std::abort();
			return false;
		});
	}

private:
	/* Even ones are a card's first engine, which alone has QPs of the Ethernet function. */
	static constexpr unsigned kNumbers[] = {0, 2};
	/* Far more events than even RNR NAKs with the shortest timer can cause in 2 ms. */
	static constexpr unsigned kMaxEvents = 100'000;

	Fabric fabric_{1, 0, {}};
};

} // namespace tern::sim
