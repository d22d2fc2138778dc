/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <cstring>

#include "qemu/rnic/formats/packet.h"
#include "tests/unit/wire/frames.h"

namespace tern::wire {

/** The fields of a packet that a test chooses. */
struct PacketOf {
	uint8_t from = 0; /* hosts as in frame() */
	uint8_t to = 1;
	uint8_t opcode = opcode_of(Service::Rc, Opcode::RcWriteMiddle);
	uint32_t qpn = 0x11;
	uint32_t psn = 0;
	uint8_t syndrome = 0;
	bool ipv4 = true;
	size_t payload = 64;
};

/** A RoCEv2 packet, capable of ECN, as a card sends it. */
inline Bytes packet(const PacketOf &of)
{
	AddressVector av;
	av.smac[5] = of.from;
	av.dmac[5] = of.to;
	av.sgid.bytes = {0xfd};
	av.dgid.bytes = {0xfd, 1};
	if (of.ipv4) {
		av.sgid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
		av.dgid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
	}
	av.traffic_class = kEcnEct0;
	Bth bth;
	bth.opcode = of.opcode;
	bth.dest_qpn = of.qpn;
	bth.psn = Psn(of.psn);
	ExtHeaders ext;
	ext.aeth.syndrome = of.syndrome;
	const size_t payload = opcode_info(of.opcode).payload ? of.payload : 0;
	Bytes bytes(kMaxRoceFrame);
	FrameBuilder builder(bytes, PathHeader(av), bth, ext, payload);
	bytes.resize(builder.finish().size());
	if (bytes.size() < kMinEthFrame)
		bytes.resize(kMinEthFrame);
	return bytes;
}

inline Bytes ack(uint32_t psn, uint8_t syndrome = kAethAck | kCreditsInvalid)
{
	return packet({.from = 1,
	               .to = 0,
	               .opcode = opcode_of(Service::Rc, Opcode::RcAcknowledge),
	               .psn = psn,
	               .syndrome = syndrome});
}

} // namespace tern::wire
