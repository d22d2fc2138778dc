/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "qemu/rnic/formats/psn.h"

namespace tern::faults {

using Bytes = std::span<const std::byte>;

/** The table has the port of each Ethernet address. An address is a number, whose bits 47:40 are
 * the first byte. */
using AddressTable = std::unordered_map<uint64_t, unsigned>;

/** Where frames arrive by a link of a topology. */
struct LinkEnd {
	std::string name; /* "FROM:TO", the names of the link's ends */
	bool at_card;     /* TO is one */
};

/** What faults look at in a RoCE packet. */
struct RoceFields {
	uint8_t opcode = 0;
	/* Bits 6:5 of an acknowledgement's syndrome (IBA table 44): 0 ACK, 1 RNR NAK, 3 NAK. Of
	 * other packets 0. */
	uint8_t ack_kind = 0;
	uint32_t qpn = 0; /* destination */
	Psn psn;
};

/** Reads a RoCE packet without verifying its ICRC. Returns none if @frame is another frame, or if
 * its headers are malformed. */
std::optional<RoceFields> read_roce(Bytes frame);

/** A frame that a switch has for one port, or that arrives by a link of a topology. */
struct Passage {
	static constexpr unsigned kNoPort = UINT_MAX;

	/** Makes the passage of @frame between two ports of a switch. The frame has an Ethernet
	 * header. A port that is a lane of a card is given as the card's primary. */
	Passage(Bytes frame, unsigned from, unsigned to);
	/** Makes the passage of @frame, which arrives at the end of a link that has the number
	 * @link_end. @at_card: a card is at that end. */
	static Passage by_link(Bytes frame, unsigned link_end, bool at_card);

	Bytes frame;
	uint64_t source;
	uint64_t destination;
	unsigned from;
	unsigned to;
	std::optional<RoceFields> roce;
	std::optional<unsigned> link_end; /* none: there is no topology */
	bool at_card = true;
};

} // namespace tern::faults
