/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bursts: packets of one message with consecutive PSNs that are lent as one unit, as TCP segments
 * are passed between a host and its NIC. All packets but the last carry one path MTU of payload,
 * which is the burst's segment size. The head is that of the single packet the burst would be with
 * a larger MTU: the opcode tells whether the message begins and ends in it, the solicited event and
 * AckReq bits are those of the last packet. Only the length fields are those of the first packet.
 * SENDs, WRITEs and READ responses of RC and XRC can be bursts; a packet with immediate data or a
 * key to invalidate is sent alone.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/rnic/formats/packet.h"

namespace tern {

/** Bytes of payload. */
inline constexpr uint32_t kMaxBurst = 64 << 10;

/** The number of packets with up to @segment bytes each that carry @size bytes. */
constexpr uint32_t segments_of(size_t size, uint32_t segment)
{
	return static_cast<uint32_t>((size + segment - 1) / segment);
}

/** The number of packets that @packet stands for. */
constexpr uint32_t packets_in(const Packet &packet)
{
	return packet.segment ? segments_of(packet.payload.size(), packet.segment) : 1;
}

/** Whether @packet is a valid burst; its segment and payload come from the peer. */
bool is_burst(const Packet &packet);

/** Packet @i of @burst. */
Packet packet_of(const Packet &burst, uint32_t i);

/** Total wire size of the frames of a burst with a head of @head bytes and @payload bytes. */
size_t burst_size(uint8_t opcode, size_t head, size_t payload, uint32_t segment);

/** Builds the whole frame of packet @i of @burst, whose head is @head, with the current content of
 * the payload, in @out, which holds kMaxRoceFrame bytes. */
std::span<const std::byte> make_whole(const Packet &burst, uint32_t i,
                                      std::span<const std::byte> head, std::span<std::byte> out);

} // namespace tern
