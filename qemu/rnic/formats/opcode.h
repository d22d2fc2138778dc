/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BTH opcodes (IBA vol. 1, table 38; XRC: annex A14) and the headers each carries. The high three
 * bits are the service; the low five have the same meaning in all services. Masked atomics, which
 * the specification does not have, are RC requests with manufacturer-specific opcodes (9.2.1: 0xc0
 * to 0xff).
 */
#pragma once

#include <cstdint>

namespace tern {

enum class Service : uint8_t {
	Rc = 0x00,
	Uc = 0x20,
	Ud = 0x60,
	Xrc = 0xa0,
};
inline constexpr uint8_t kServiceMask = 0xe0;

/** The RC opcodes; other services combine them with their service bits. */
enum class Opcode : uint8_t {
	RcSendFirst = 0x00,
	RcSendMiddle = 0x01,
	RcSendLast = 0x02,
	RcSendLastImm = 0x03,
	RcSendOnly = 0x04,
	RcSendOnlyImm = 0x05,
	RcWriteFirst = 0x06,
	RcWriteMiddle = 0x07,
	RcWriteLast = 0x08,
	RcWriteLastImm = 0x09,
	RcWriteOnly = 0x0a,
	RcWriteOnlyImm = 0x0b,
	RcReadRequest = 0x0c,
	RcReadResponseFirst = 0x0d,
	RcReadResponseMiddle = 0x0e,
	RcReadResponseLast = 0x0f,
	RcReadResponseOnly = 0x10,
	RcAcknowledge = 0x11,
	RcAtomicAcknowledge = 0x12,
	RcCompareSwap = 0x13,
	RcFetchAdd = 0x14,
	RcSendLastInv = 0x16,
	RcSendOnlyInv = 0x17,
	RcFlush = 0x1c,       /* A19 */
	RcAtomicWrite = 0x1d, /* A19 */
	RcMaskedCompareSwap = 0xd3,
	RcMaskedFetchAdd = 0xd4,
};

enum class PacketKind : uint8_t {
	Reserved, /* invalid opcode */
	Send,
	Write,
	ReadRequest,
	ReadResponse,
	Acknowledge,
	AtomicAcknowledge,
	Atomic,
	AtomicWrite, /* answered by a READ response without data, as is Flush */
	Flush,
	Cnp,     /* congestion notification, A17.9.3 */
	Invalid, /* a request that cannot be executed, see kInvalidRequest */
};

/** Kind and headers of a packet with some opcode. */
struct OpcodeInfo {
	PacketKind kind = PacketKind::Reserved;
	bool first = false; /* starts a message (First, Only, and all that are never split) */
	bool last = false;  /* ends a message (Last, Only, and all that are never split) */
	bool xrceth = false;
	bool deth = false;
	bool feth = false;
	bool reth = false;
	bool aeth = false;
	bool atomic_eth = false;
	bool atomic_masks = false; /* behind the AtomicETH */
	bool atomic_ack_eth = false;
	bool imm = false;
	bool ieth = false;
	bool cnp = false;     /* 16 reserved bytes */
	bool payload = false; /* may carry payload */
	uint8_t ext_size = 0; /* size of the extended transport headers, bytes */

	bool operator==(const OpcodeInfo &) const = default;
	constexpr bool is_request() const
	{
		return kind == PacketKind::Send || kind == PacketKind::Write ||
		       kind == PacketKind::ReadRequest || kind == PacketKind::Atomic ||
		       kind == PacketKind::AtomicWrite || kind == PacketKind::Flush ||
		       kind == PacketKind::Invalid;
	}
};

/** Stands for a request of RC or XRC whose opcode is reserved, or whose size is not that of its
 * headers. Only its BTH is valid. */
inline constexpr OpcodeInfo kInvalidRequest{.kind = PacketKind::Invalid};

/** The opcode of a congestion notification packet, which belongs to no service. */
inline constexpr uint8_t kCnpOpcode = 0x81;

constexpr bool is_masked_atomic(uint8_t opcode)
{
	return opcode == static_cast<uint8_t>(Opcode::RcMaskedCompareSwap) ||
	       opcode == static_cast<uint8_t>(Opcode::RcMaskedFetchAdd);
}
constexpr Service service_of(uint8_t opcode)
{
	return is_masked_atomic(opcode) ? Service::Rc : static_cast<Service>(opcode & kServiceMask);
}
/** The wire's opcode byte for @opcode in @service. */
constexpr uint8_t opcode_of(Service service, Opcode opcode)
{
	return static_cast<uint8_t>(service) | static_cast<uint8_t>(opcode);
}
/** The opcode without its service. */
constexpr Opcode rc_opcode(uint8_t opcode)
{
	return static_cast<Opcode>(is_masked_atomic(opcode) ? opcode : opcode & ~kServiceMask);
}

/** First, Middle, Last or Only of a SEND, a WRITE or a READ response. @imm: the last packet of a
 * SEND or WRITE has immediate data. */
constexpr Opcode part_of(PacketKind kind, bool first, bool last, bool imm = false)
{
	const bool response = kind == PacketKind::ReadResponse;
	const Opcode base = response                    ? Opcode::RcReadResponseFirst
	                    : kind == PacketKind::Write ? Opcode::RcWriteFirst
	                                                : Opcode::RcSendFirst;
	const int only = response ? 3 : 4;
	const int step = first ? (last ? only : 0) : (last ? 2 : 1);
	return static_cast<Opcode>(static_cast<uint8_t>(base) + step + (imm && last));
}

/** Indexed by the wire's opcode byte; the kind of unsupported opcodes is Reserved. */
const OpcodeInfo &opcode_info(uint8_t opcode);
inline const OpcodeInfo &opcode_info(Opcode opcode)
{
	return opcode_info(static_cast<uint8_t>(opcode));
}

} // namespace tern
