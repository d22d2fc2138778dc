// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/formats/burst.h"

#include <bit>

namespace tern {

bool is_burst(const Packet &packet)
{
	const OpcodeInfo &info = *packet.info;
	const Service service = service_of(packet.bth.opcode);
	const size_t size = packet.payload.size();
	return std::has_single_bit(packet.segment) && packet.segment >= kMinPathMtu &&
	       packet.segment <= kMaxPathMtu && size > packet.segment && size <= kMaxBurst &&
	       (info.last || size % packet.segment == 0) &&
	       (service == Service::Rc || service == Service::Xrc) &&
	       (info.kind == PacketKind::Send || info.kind == PacketKind::Write ||
	        info.kind == PacketKind::ReadResponse) &&
	       !info.imm && !info.ieth;
}

Packet packet_of(const Packet &burst, uint32_t i)
{
	Packet packet = burst;
	const bool last = i + 1 == packets_in(burst);
	packet.segment = 0;
	packet.bth.opcode = opcode_of(
	        service_of(burst.bth.opcode),
	        part_of(burst.info->kind, burst.info->first && i == 0, burst.info->last && last));
	packet.info = &opcode_info(packet.bth.opcode);
	packet.bth.psn = burst.bth.psn + i;
	packet.bth.solicited = last && burst.bth.solicited;
	packet.bth.ack_request = last && burst.bth.ack_request;
	packet.payload = burst.payload.skip(size_t{i} * burst.segment).first(burst.segment);
	return packet;
}

} // namespace tern
