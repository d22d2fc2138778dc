/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qemu/fabric/toml_table.h"
#include "qemu/fabric/topology.h"

namespace tern::fabric {

/** What a file says of switches, hosts and links (docs/fabric.md), with all patterns and counts
 * resolved. Times in ns, sizes in bytes, rates in bits per second. */
struct Plan {
	struct Host {
		std::string name;
		unsigned first; /* of its cards; they follow one another */
		unsigned cards;
		std::string
		        tap; /* in real time it is this TAP interface; empty: a host with cards */
	};
	struct Link {
		Fabric::End a;
		Fabric::End b;
		LinkConfig config;
	};

	uint64_t seed = 1;
	SwitchConfig queues;       /* of each switch */
	bool has_watchdog = false; /* the file says whether queues.pfc has one */
	std::vector<std::string> switches;
	std::vector<Host> hosts;
	std::vector<std::string> cards;
	std::vector<Link> links;

	const std::string &name_of(const Fabric::End &end) const
	{
		return (end.kind == Fabric::End::Kind::Host ? cards : switches)[end.number];
	}
	/** Returns the rate of the link of each card. */
	std::vector<uint64_t> card_rates() const;
};

/**
 * Returns the time of the PFC watchdog for @plan, ns, which is longer than congestion can pause a
 * port. It is 200 ms, as is usual, or the time that the slowest link takes to send all frames of a
 * priority that all switches can hold, if that is longer. A switch ends its pause when the frames
 * that it holds have left, and each of these waits only for frames that some switch holds.
 */
uint64_t watchdog_for(const Plan &plan);

/** Takes the keys of a plan from @file, and no others. Throws a TomlError, also if there are more
 * than @max_cards. */
void read_plan(TomlTable &file, size_t max_cards, Plan &plan);

/** Returns the cards and switches whose names match @pattern (a shell pattern, glob(7)). Throws the
 * error of @table for @key if there is none. */
std::vector<Fabric::End> find_ends(const Plan &plan, const TomlTable &table, std::string_view key,
                                   const std::string &pattern);

/** Returns the numbers of the links between the two, in either order. */
std::vector<unsigned> find_links(const Plan &plan, const Fabric::End &a, const Fabric::End &b);

/** Adds the switches, links and routes of @plan to @fabric, which already has the cards. */
void connect_all(const Plan &plan, Fabric &fabric);

/** A queue of a switch: what waits at a port in a priority. */
struct QueueRef {
	std::string name; /* "SWITCH to PEER" */
	Port *port;
	uint8_t priority;

	const EgressQueues::Stats &stats() const { return port->queues.stats(priority); }
};
/** All queues of all switches. */
std::vector<QueueRef> queues_of(const Plan &plan, Fabric &fabric);

} // namespace tern::fabric
