/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "qemu/fabric/event_loop.h"
#include "qemu/rnic/formats/gid.h"
#include "qemu/rnic/rnic.h"
#include "tests/sim/link.h"
#include "tests/sim/rng.h"
#include "tests/support/fake_host.h"
#include "tests/support/host.h"

namespace tern::sim {

struct Area;

struct NodeGid {
	hw::tern_hw_gid_type type;
	Gid gid;
	uint16_t vlan;
};

/** One host with its card: what an embedder does for the card, under the simulated clock. */
class Node : private Wire, private Interrupts {
public:
	Node(EventLoop &loop, Rng rng, unsigned number, const LinkConfig &link, Link::Sink sink);

	/** The card may have work: it runs within moments. */
	void wake();
	/** A frame from the fabric. */
	void receive(const Link::Frame &frame);
	/** A packet, or burst, of which the payload is elsewhere. */
	void receive(std::span<const std::byte> head,
	             std::span<const std::span<const std::byte>> payload, uint32_t segment);
	/** Register reset, then the card is set up anew as at power-on. */
	void reset_card();

	EventLoop &loop;
	Mac mac;
	std::vector<NodeGid> gids; /* as in the card's table */
	test::FakeMemory memory;
	std::vector<std::byte> device_memory;
	Link uplink;
	Rnic card;
	test::Driver driver;
	std::vector<Area *> on_demand; /* whose pages come and go */
	/** Called, some time later, for each interrupt. */
	std::function<void(unsigned)> on_interrupt;
	/** Loans whose memory was gone when they arrived: they had to be recalled. */
	uint64_t overdue = 0;

private:
	bool transmit(std::span<const std::byte> frame) override { return uplink.send(frame); }
	Lend lend(std::span<const std::byte> head, std::span<const HostRange> payload,
	          uint32_t segment, const tern::Loan &loan) override
	{
		return uplink.lend(head, payload, segment, loan);
	}
	uint64_t recall(const Recall &what) override;
	void raise(unsigned vector) override;
	void set_up();
	void run_at(uint64_t when);
	void run();

	static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

	Rng rng_;
	uint64_t next_run_ = kNever;
};

/** Nodes around a switch that knows their MACs. */
class Fabric {
public:
	Fabric(uint64_t seed, unsigned nodes, const LinkConfig &link);

	/** All packets that the cards have sent are on a link, were received by a card, or are
	 * counted as lost; an error message if not. Of these nodes alone, none of which was reset.
	 * Waits until nothing is on its way. */
	std::string imbalance();
	/** A frame of @from; a multicast goes to all the others. @loan: the rest of it, in the
	 * memory of @from. */
	void forward(const Link::Frame &frame, const Link::Loan &loan, Node &from);

	EventLoop loop;
	Rng rng;
	std::vector<std::unique_ptr<Node>> nodes;
	std::vector<Node *> guests; /* at the same switch, but somebody else's */
	/** Sees what is forwarded. */
	std::function<void(const Link::Frame &, const Link::Loan &)> tap;

private:
	/* Packets to the fabric and from it, which differ for multicasts and corrupted addresses.
	 */
	uint64_t entered_ = 0, left_ = 0;
};

Mac node_mac(unsigned i);
/** RoCEv2 over IPv4, over IPv6, RoCEv1, and RoCEv2 in a VLAN. */
std::vector<NodeGid> node_gids(unsigned i);

} // namespace tern::sim
