/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Ethernet addresses of what stays on one link. */
#pragma once

#include <cstdint>

namespace tern {

/** Whether no switch here forwards frames to @address, a group address as a number: those that no
 * bridge forwards (IEEE 802.1Q, 8.6.3), pause frames and LACP among them. Frames of bridges to each
 * other are an exception. As our switches take no part in their protocol, bridges have to find the
 * loops through them. */
constexpr bool stays_on_link(uint64_t address)
{
	constexpr uint64_t kBridges = 0x0180c2000000, kLast = kBridges + 0xf;
	return address > kBridges && address <= kLast;
}

} // namespace tern
