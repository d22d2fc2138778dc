/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Ethernet addresses of what stays on one link. */
#pragma once

#include <cstdint>

namespace tern {

/** Returns true if switches must not forward frames to @address, an Ethernet address as a number.
 * These are the group addresses that bridges do not forward (IEEE 802.1Q, 8.6.3). Pause frames and
 * LACP use them. The address 01:80:c2:00:00:00 is an exception: our switches do not take part in
 * the spanning tree protocol. They forward its frames, so that bridges can detect loops. */
constexpr bool stays_on_link(uint64_t address)
{
	constexpr uint64_t kBridges = 0x0180c2000000, kLast = kBridges + 0xf;
	return address > kBridges && address <= kLast;
}

} // namespace tern
