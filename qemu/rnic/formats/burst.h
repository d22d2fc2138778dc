/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bursts: packets of one message with consecutive PSNs that are lent as one, as TCP segments are
 * between a host and its card. All but the last have as much payload as the path MTU says, which
 * is the burst's segment. The head is that of the one packet they would be if the MTU allowed it:
 * its opcode tells whether the message begins and ends in it, solicited event and AckReq are those
 * of the last packet. Only the lengths in it are those of its first segment. SENDs, WRITEs and READ
 * responses of RC and XRC go so; a packet with immediate data or a key to invalidate goes alone.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/rnic/formats/packet.h"

namespace tern {

/** Bytes of payload. */
inline constexpr uint32_t kMaxBurst = 64 << 10;

/** How many packets of @segment bytes @size bytes are. */
constexpr uint32_t segments_of(size_t size, uint32_t segment)
{
	return static_cast<uint32_t>((size + segment - 1) / segment);
}

/** How many packets @packet stands for. */
constexpr uint32_t packets_in(const Packet &packet)
{
	return packet.segment ? segments_of(packet.payload.size(), packet.segment) : 1;
}

/** Whether @packet, whose segment and payload are as somebody says, is a burst. */
bool is_burst(const Packet &packet);

/** Packet @i of @burst. */
Packet packet_of(const Packet &burst, uint32_t i);

/** The size on a wire of the frames of a burst with @head bytes before its @payload bytes. */
size_t burst_size(uint8_t opcode, size_t head, size_t payload, uint32_t segment);

/** The whole frame of packet @i of @burst, which has @head, with the payload as it is now; in
 * @out, which holds kMaxRoceFrame bytes. */
std::span<const std::byte> make_whole(const Packet &burst, uint32_t i,
                                      std::span<const std::byte> head, std::span<std::byte> out);

} // namespace tern
