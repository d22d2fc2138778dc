/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "qemu/rnic/formats/psn.h"
#include "qemu/wire/framing.h"

namespace tern::wire {

/** Ethernet addresses as numbers, the first byte in 47:40, with the port of each. */
using AddressTable = std::unordered_map<uint64_t, unsigned>;

/** What faults look at in a RoCE packet. */
struct RoceFields {
	uint8_t opcode = 0;
	/* Bits 6:5 of an acknowledgement's syndrome (IBA table 44): 0 ACK, 1 RNR NAK, 3 NAK. Of
	 * other packets 0. */
	uint8_t ack_kind = 0;
	uint32_t qpn = 0; /* destination */
	Psn psn;
};

/** Reads a RoCE packet without verifying its ICRC. None for another frame, and for one with
 * malformed headers. */
std::optional<RoceFields> read_roce(Frame frame);

/** A frame on its way through the switch to one port. Of several lanes, the ports are the primary.
 */
struct Passage {
	/* @frame has an Ethernet header. */
	Passage(Frame frame, unsigned from, unsigned to);

	Frame frame;
	uint64_t source;
	uint64_t destination;
	unsigned from;
	unsigned to;
	std::optional<RoceFields> roce;
};

} // namespace tern::wire
