// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/faults/passage.h"

#include "qemu/fabric/switch.h"
#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/packet.h"

namespace tern::faults {

constexpr unsigned kAckKindShift = 5;

std::optional<RoceFields> read_roce(Bytes frame)
{
	headers::Reader in(roce_transport(frame));
	headers::Bth bth;
	if (!in.take(bth))
		return std::nullopt;
	RoceFields fields{.opcode = bth.opcode,
	                  .qpn = bth.qpn.get() & headers::kMask24,
	                  .psn = Psn(bth.psn.get())};
	headers::Aeth aeth;
	if (opcode_info(bth.opcode).kind == PacketKind::Acknowledge && in.take(aeth)) {
		const uint32_t syndrome = aeth.syndrome_msn.get() >> headers::kAethSyndromeShift;
		fields.ack_kind = (syndrome & kAethKindMask) >> kAckKindShift;
	}
	return fields;
}

Passage::Passage(Bytes frame, unsigned from, unsigned to)
        : frame(frame), source(fabric::mac_at(frame, sizeof(Mac))),
          destination(fabric::mac_at(frame, 0)), from(from), to(to), roce(read_roce(frame))
{
}

Passage Passage::by_link(Bytes frame, unsigned link_end, bool at_card)
{
	Passage passage(frame, kNoPort, kNoPort);
	passage.link_end = link_end;
	passage.at_card = at_card;
	return passage;
}

} // namespace tern::faults
