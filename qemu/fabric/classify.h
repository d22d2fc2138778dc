/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a switch reads of a frame, and the one thing that it writes. Pure functions on bytes. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern::fabric {

/** Returns the PCP of a tagged frame, else the upper three bits of an IP packet's DSCP, else 0. */
uint8_t priority_of(std::span<const std::byte> frame);

/** Returns a hash that is the same for all frames of a flow. It covers the IP addresses and UDP
 * ports, of fragments the IP addresses alone, and of other frames the MACs. Hashes with different
 * seeds are independent of each other. */
uint64_t flow_hash(std::span<const std::byte> frame, uint64_t seed);

enum class Ecn {
	NotCapable, /* not IP, or the sender does not understand ECN */
	Marked,
	WasMarked, /* before */
};
/** Whether mark_ce() would mark @frame. */
bool can_mark(std::span<const std::byte> frame);
/** Whether @frame is marked. */
bool is_marked(std::span<const std::byte> frame);
/** Sets Congestion Experienced (RFC 3168) in the IP header, and corrects the IPv4 checksum. The
 * ICRC covers neither (IBA A17.3.3). */
Ecn mark_ce(std::span<std::byte> frame);

} // namespace tern::fabric
