// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/passage.h"

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/shm/address_page.h"

namespace tern::wire {

constexpr unsigned kAckKindShift = 5;

std::optional<RoceFields> read_roce(Frame frame)
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

Passage::Passage(Frame frame, unsigned from, unsigned to)
        : frame(frame), source(shm::address_at(frame, sizeof(Mac))),
          destination(shm::address_at(frame, 0)), from(from), to(to), roce(read_roce(frame))
{
}

} // namespace tern::wire
