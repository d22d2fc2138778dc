/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/**
 * The invariant CRC of a RoCE packet (IBA vol. 1, 7.8.1; A16.3.4.1; A17.3.3), over all bytes from
 * the network header to the end of the pad, with fields that routers change set to ones. @packet
 * begins with the IP header or GRH and excludes the ICRC; its BTH is complete and an IPv4 header
 * has no options. On the wire the least significant byte comes first.
 */
uint32_t icrc(std::span<const std::byte> packet, bool roce_v2);

} // namespace tern
