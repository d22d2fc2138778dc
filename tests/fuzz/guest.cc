// SPDX-License-Identifier: GPL-2.0-or-later
/* Two guests that do anything to their own cards and send anything to each other: registers,
 * commands, doorbells, rings and records, work requests, forged packets, and time that passes.
 * Their embedders look at the cards, inject faults, and have links that fail and pause. */
#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/rnic/formats/pause.h"
#include "tests/fuzz/world.h"

namespace tern::sim {
namespace {

constexpr unsigned kMaxActs = 64;

CongestionParameters parameters(Rng &rng)
{
	CongestionParameters p;
	if (rng.chance(1, 2))
		p = sigcomm2015();
	p.rp_algorithm = static_cast<uint32_t>(rng.below(4));
	p.np_cnp_prio_mode = static_cast<uint32_t>(rng.below(2));
	p.pfc_enable = static_cast<uint32_t>(rng.below(256));
	p.pfc_trust_dscp = static_cast<uint32_t>(rng.below(2));
	return p;
}

/* What the embedder of a card may do at any time. */
void embed(Node &node, Rng &rng)
{
	const auto qpn = static_cast<uint32_t>(rng.below(20));
	switch (rng.below(12)) {
	case 0:
		node.card.set_link(rng.chance(3, 4));
		break;
	case 1:
		node.card.hold_commands(rng.chance(1, 4), static_cast<uint32_t>(rng.below(4)));
		break;
	case 2:
		node.card.refuse_command(static_cast<uint32_t>(rng.below(4)));
		break;
	case 3:
		node.card.falsify(static_cast<uint32_t>(rng.below(8)),
		                  static_cast<uint32_t>(rng.next()));
		break;
	case 4:
		node.card.fail_qp(qpn);
		break;
	case 5:
		node.card.slow_qp(qpn, static_cast<uint32_t>(rng.below(1'000'000)));
		break;
	case 6:
		node.card.describe(rng.chance(1, 2) ? std::optional(qpn) : std::nullopt,
		                   rng.below(20));
		break;
	case 7 ... 8: {
		const PauseFrame frame = pause_frame(static_cast<uint8_t>(rng.below(8)),
		                                     static_cast<uint16_t>(rng.below(1 << 16)));
		node.receive({frame.begin(), frame.end()});
		break;
	}
	case 9:
		node.card.set_congestion(parameters(rng));
		break;
	case 10:
		node.card.lost(static_cast<uint32_t>(rng.below(4)));
		node.card.recall();
		break;
	default:
		node.card.wire_ready(
		        static_cast<Wire::Destination>(rng.below(Wire::kDestinations)));
		break;
	}
	node.wake();
}

} // namespace
} // namespace tern::sim

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	using namespace tern::sim;
	Rng rng(std::as_bytes(std::span(data, size)));
	World world(rng);
	Vandal first(world.node(0), rng, world.nodes());
	Vandal second(world.node(1), rng, world.nodes());
	for (unsigned i = 0; i < kMaxActs && !rng.exhausted(); i++) {
		if (rng.chance(1, 8))
			embed(world.node(rng.below(2)), rng);
		else
			(rng.chance(1, 2) ? first : second).act();
		world.pass(rng.chance(7, 8) ? 2'000 : 100'000);
	}
	world.pass(2'000'000);
	return 0;
}
