// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/formats/opcode.h"

#include <array>
#include <cstddef>

#include "qemu/rnic/formats/headers.h"

namespace tern {

namespace {

/* Single-packet requests and responses (READ request, atomics, acknowledges) are both first and
 * last. */
constexpr OpcodeInfo describe_rc(Opcode opcode)
{
	using enum PacketKind;

	switch (opcode) {
	case Opcode::RcSendFirst:
		return {.kind = Send, .first = true, .payload = true};
	case Opcode::RcSendMiddle:
		return {.kind = Send, .payload = true};
	case Opcode::RcSendLast:
		return {.kind = Send, .last = true, .payload = true};
	case Opcode::RcSendLastImm:
		return {.kind = Send, .last = true, .imm = true, .payload = true};
	case Opcode::RcSendOnly:
		return {.kind = Send, .first = true, .last = true, .payload = true};
	case Opcode::RcSendOnlyImm:
		return {.kind = Send, .first = true, .last = true, .imm = true, .payload = true};
	case Opcode::RcSendLastInv:
		return {.kind = Send, .last = true, .ieth = true, .payload = true};
	case Opcode::RcSendOnlyInv:
		return {.kind = Send, .first = true, .last = true, .ieth = true, .payload = true};
	case Opcode::RcWriteFirst:
		return {.kind = Write, .first = true, .reth = true, .payload = true};
	case Opcode::RcWriteMiddle:
		return {.kind = Write, .payload = true};
	case Opcode::RcWriteLast:
		return {.kind = Write, .last = true, .payload = true};
	case Opcode::RcWriteLastImm:
		return {.kind = Write, .last = true, .imm = true, .payload = true};
	case Opcode::RcWriteOnly:
		return {.kind = Write, .first = true, .last = true, .reth = true, .payload = true};
	case Opcode::RcWriteOnlyImm:
		return {.kind = Write,
		        .first = true,
		        .last = true,
		        .reth = true,
		        .imm = true,
		        .payload = true};
	case Opcode::RcReadRequest:
		return {.kind = ReadRequest, .first = true, .last = true, .reth = true};
	case Opcode::RcReadResponseFirst:
		return {.kind = ReadResponse, .first = true, .aeth = true, .payload = true};
	case Opcode::RcReadResponseMiddle:
		return {.kind = ReadResponse, .payload = true};
	case Opcode::RcReadResponseLast:
		return {.kind = ReadResponse, .last = true, .aeth = true, .payload = true};
	case Opcode::RcReadResponseOnly:
		return {.kind = ReadResponse,
		        .first = true,
		        .last = true,
		        .aeth = true,
		        .payload = true};
	case Opcode::RcAcknowledge:
		return {.kind = Acknowledge, .first = true, .last = true, .aeth = true};
	case Opcode::RcAtomicAcknowledge:
		return {.kind = AtomicAcknowledge,
		        .first = true,
		        .last = true,
		        .aeth = true,
		        .atomic_ack_eth = true};
	case Opcode::RcCompareSwap:
	case Opcode::RcFetchAdd:
		return {.kind = Atomic, .first = true, .last = true, .atomic_eth = true};
	case Opcode::RcMaskedCompareSwap:
	case Opcode::RcMaskedFetchAdd:
		return {.kind = Atomic,
		        .first = true,
		        .last = true,
		        .atomic_eth = true,
		        .atomic_masks = true};
	case Opcode::RcFlush:
		return {.kind = Flush, .first = true, .last = true, .feth = true, .reth = true};
	case Opcode::RcAtomicWrite:
		return {.kind = AtomicWrite,
		        .first = true,
		        .last = true,
		        .reth = true,
		        .payload = true};
	default:
		return {};
	}
}

/* As RC; requests also carry the SRQ number (A14.3.3). */
constexpr OpcodeInfo describe_xrc(Opcode opcode)
{
	OpcodeInfo info = describe_rc(opcode);
	info.xrceth = info.is_request();
	return info;
}

/* SENDs and WRITEs only: nothing is answered. */
constexpr OpcodeInfo describe_uc(Opcode opcode)
{
	return opcode <= Opcode::RcWriteOnlyImm ? describe_rc(opcode) : OpcodeInfo{};
}

/* One packet per message. */
constexpr OpcodeInfo describe_ud(Opcode opcode)
{
	if (opcode != Opcode::RcSendOnly && opcode != Opcode::RcSendOnlyImm)
		return {};
	OpcodeInfo info = describe_rc(opcode);
	info.deth = true;
	return info;
}

constexpr OpcodeInfo describe(uint8_t opcode)
{
	if (opcode == kCnpOpcode)
		return {.kind = PacketKind::Cnp, .first = true, .last = true, .cnp = true};
	switch (service_of(opcode)) {
	case Service::Rc:
		return describe_rc(rc_opcode(opcode));
	case Service::Uc:
		return describe_uc(rc_opcode(opcode));
	case Service::Ud:
		return describe_ud(rc_opcode(opcode));
	case Service::Xrc:
		return describe_xrc(rc_opcode(opcode));
	}
	return {};
}

constexpr size_t ext_size(const OpcodeInfo &info)
{
	return (info.xrceth ? sizeof(headers::Xrceth) : 0) +
	       (info.deth ? sizeof(headers::Deth) : 0) + (info.feth ? sizeof(headers::Feth) : 0) +
	       (info.reth ? sizeof(headers::Reth) : 0) +
	       (info.atomic_eth ? sizeof(headers::AtomicEth) : 0) +
	       (info.atomic_masks ? sizeof(headers::AtomicMasks) : 0) +
	       (info.aeth ? sizeof(headers::Aeth) : 0) +
	       (info.atomic_ack_eth ? sizeof(headers::AtomicAckEth) : 0) +
	       (info.imm ? sizeof(headers::Imm) : 0) + (info.ieth ? sizeof(headers::Ieth) : 0) +
	       (info.cnp ? sizeof(headers::Cnp) : 0);
}

constexpr std::array<OpcodeInfo, 256> make_table()
{
	std::array<OpcodeInfo, 256> table{};
	for (unsigned i = 0; i < table.size(); i++) {
		table[i] = describe(static_cast<uint8_t>(i));
		table[i].ext_size = static_cast<uint8_t>(ext_size(table[i]));
	}
	return table;
}

constexpr auto kOpcodes = make_table();

} // namespace

const OpcodeInfo &opcode_info(uint8_t opcode)
{
	return kOpcodes[opcode];
}

} // namespace tern
