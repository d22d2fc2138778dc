// SPDX-License-Identifier: GPL-2.0-or-later
/* A guest that writes anything anywhere, on one wire with two that behave. */
#include <gtest/gtest.h>

#include <cstring>

#include "qemu/rnic/formats/packet.h"
#include "tests/sim/node.h"
#include "tests/sim/options.h"
#include "tests/sim/traffic.h"
#include "tests/sim/vandal.h"

namespace tern::sim {
namespace {

/* The others' traffic goes on, and the card of the vandal neither crashes nor hangs. */
TEST(Garbage, GuestHarmsOnlyItself)
{
	for (uint64_t i = 0; i < options().seeds; i++) {
		const uint64_t seed = options().seed + i;
		Traffic traffic(seed);
		Fabric &fabric = traffic.fabric();
		Rng rng(~seed);
		LinkConfig link;
		link.borrow = 500;
		link.bursts = 500;
		Node bad(fabric.loop, rng.fork(), 100, link,
		         [&](const Link::Frame &frame, const Link::Loan &loan) {
			         fabric.forward(frame, loan, bad);
		         });
		fabric.guests.push_back(&bad);
		Rng choices = rng.fork();
		Vandal vandal(bad, choices, fabric.nodes);
		bool on = true;
		std::function<void()> tick = [&] {
			if (!on)
				return;
			for (int n = 0; n < 4; n++)
				vandal.act();
			fabric.loop.after(rng.between(100, 3000), tick);
		};
		fabric.loop.after(0, tick);
		ASSERT_EQ(traffic.run(Disruption::None), "") << replay(seed);
		on = false;
		fabric.loop.run_for(1'000'000);
	}
}

/* Frames of noise, and real ones with some bytes changed, reach every card. */
TEST(Garbage, Frames)
{
	for (uint64_t i = 0; i < options().seeds; i++) {
		const uint64_t seed = options().seed + i;
		Traffic traffic(seed);
		Fabric &fabric = traffic.fabric();
		Rng rng(~seed);
		bool on = true;
		std::function<void()> tick = [&] {
			if (!on)
				return;
			Link::Frame frame(rng.below(300));
			rng.fill(frame);
			const auto &to = fabric.nodes[rng.below(fabric.nodes.size())];
			if (frame.size() > 42) {
				std::memcpy(frame.data(), to->mac.data(), 6);
				/* IPv4, UDP, 4791 */
				const uint8_t head[] = {0x08, 0x00, 0x45};
				std::memcpy(frame.data() + 12, head, sizeof(head));
				frame[23] = std::byte{17};
				frame[20] = frame[21] = std::byte{0};
				frame[36] = std::byte{0x12};
				frame[37] = std::byte{0xb7};
			}
			to->receive(frame);
			fabric.loop.after(rng.between(100, 5000), tick);
		};
		fabric.loop.after(0, tick);
		ASSERT_EQ(traffic.run(Disruption::None), "") << replay(seed);
		on = false;
		fabric.loop.run_for(100'000);
	}
}

/* One that lends: heads of real packets with payloads of another size, heads that are cut or go on
 * too far, noise. None of that is a packet, or it is one that was there before. */
class Swindler {
public:
	Swindler(Fabric &fabric, Rng rng) : fabric_(fabric), rng_(rng)
	{
		fabric.tap = [this](const Link::Frame &frame, const Link::Loan &loan) {
			/* What was damaged on its way would pass without its ICRC. */
			if (!loan.lent &&
			    (!is_roce(frame) || !std::holds_alternative<Packet>(parse(frame))))
				return;
			seen_[next_++ % seen_.size()] = {frame, loan.bytes(), loan.segment};
		};
	}

	void act()
	{
		Seen seen = seen_[rng_.below(seen_.size())];
		if (rng_.chance(1, 8)) {
			seen = {Link::Frame(rng_.below(200))};
			rng_.fill(seen.frame);
		}
		const uint32_t segment = absurd_segment(seen);
		std::vector<std::byte> payload(rng_.below(rng_.chance(1, 8) ? 70'000 : 5000));
		if (seen.size) {
			/* As close as one byte, or a whole segment. */
			const bool long_enough = seen.size > uint64_t{3} * seen.segment;
			const uint64_t step =
			        long_enough && rng_.chance(1, 2) ? std::max(seen.segment, 1u) : 1;
			if (rng_.chance(1, 2))
				payload.resize(seen.size + step * (rng_.between(1, 4) * 2 - 5));
			/* A part of a burst is one for its head, and may be a packet. */
			if (!segment &&
			    (payload.size() == seen.size || payload.size() == seen.segment))
				return;
		} else if (!segment) {
			const auto cut = static_cast<size_t>(rng_.below(seen.frame.size() + 1));
			const auto from = seen.frame.begin() + static_cast<ptrdiff_t>(cut);
			payload.assign(from, seen.frame.end());
			payload.resize(rng_.below(payload.size() + 1));
			seen.frame.resize(cut);
		}
		const std::span<const std::byte> piece(payload);
		const auto cut = static_cast<size_t>(rng_.below(piece.size() + 1));
		const std::span<const std::byte> pieces[] = {piece.first(cut), piece.subspan(cut)};
		for (const auto &node : fabric_.nodes)
			node->receive(seen.frame, pieces, segment);
	}

private:
	struct Seen {
		Link::Frame frame;
		uint64_t size = 0; /* of the payload that is elsewhere */
		uint32_t segment = 0;
	};

	/* None, or one that the lengths in the head do not tell. */
	uint32_t absurd_segment(const Seen &seen)
	{
		if (rng_.chance(1, 3))
			return 0;
		const auto any = static_cast<uint32_t>(rng_.next() >> rng_.below(60));
		const uint32_t segment = rng_.chance(1, 2) ? 128u << rng_.below(7) : any;
		return segment == seen.segment || segment == seen.size ? 0 : segment;
	}

	Fabric &fabric_;
	Rng rng_;
	std::array<Seen, 32> seen_;
	size_t next_ = 0;
};

TEST(Garbage, Loans)
{
	for (uint64_t i = 0; i < options().seeds; i++) {
		const uint64_t seed = options().seed + i;
		Traffic traffic(seed);
		Fabric &fabric = traffic.fabric();
		for (const auto &node : fabric.nodes)
			node->uplink.config.borrow = node->uplink.config.bursts = 800;
		Rng rng(~seed);
		Swindler swindler(fabric, rng.fork());
		bool on = true;
		std::function<void()> tick = [&] {
			if (!on)
				return;
			swindler.act();
			fabric.loop.after(rng.between(100, 5000), tick);
		};
		fabric.loop.after(0, tick);
		ASSERT_EQ(traffic.run(Disruption::None), "") << replay(seed);
		on = false;
		fabric.loop.run_for(100'000);
	}
}

} // namespace
} // namespace tern::sim
