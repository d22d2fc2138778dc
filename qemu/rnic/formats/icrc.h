/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/**
 * The invariant CRC of a RoCE packet (IBA vol. 1, 7.8.1; A16.3.4.1; A17.3.3): over all bytes from
 * the network header to the end of the pad, with the fields that routers change taken as ones.
 * @packet: from the first byte of the IP header or GRH, without the ICRC itself; its BTH is whole,
 * and an IPv4 header has no options. The four bytes go on the wire least significant byte first.
 */
uint32_t icrc(std::span<const std::byte> packet, bool roce_v2);

} // namespace tern
