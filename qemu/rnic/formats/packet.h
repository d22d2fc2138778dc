/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCE packets as bytes: pure functions, no state. Layouts: IBA vol. 1 chapter 9
 * (BTH, RETH, AETH, AtomicETH), annex A16 (RoCEv1) and A17 (RoCEv2).
 */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <variant>

#include "qemu/rnic/formats/gid.h"
#include "qemu/rnic/formats/opcode.h"
#include "qemu/rnic/formats/payload.h"
#include "qemu/rnic/formats/psn.h"

namespace tern {

inline constexpr uint16_t kRoceUdpPort = 4791;
inline constexpr uint16_t kNoVlan = 0xffff;
inline constexpr uint16_t kDefaultPkey = 0xffff;
/** The ECN field of the traffic class (RFC 3168). */
inline constexpr uint8_t kEcnMask = 3;
inline constexpr uint8_t kEcnEct0 = 2; /* capable of ECN */
inline constexpr uint8_t kEcnCe = 3;   /* congestion experienced */
/** Ethernet + VLAN + IPv6 or GRH + UDP. */
inline constexpr size_t kMaxPathHeader = 14 + 4 + 40 + 8;
/** BTH + AtomicETH + masks is the longest. */
inline constexpr size_t kMaxTransportHeader = 12 + 28 + 16;
inline constexpr size_t kIcrcSize = 4;
/** Path MTUs are powers of two (IBA 9.2.1). */
inline constexpr uint32_t kMinPathMtu = 256;
inline constexpr uint32_t kMaxPathMtu = 4096;
inline constexpr size_t kMaxRoceFrame = kMaxPathHeader + kMaxTransportHeader + 4096 + kIcrcSize;
/** Ethernet + VLAN + the largest payload of the Ethernet function. */
inline constexpr size_t kMaxEthFrame = 14 + 4 + 9000;
/** Without FCS (IEEE 802.3). */
inline constexpr size_t kMinEthFrame = 60;

struct Bth {
	uint8_t opcode = 0;
	bool solicited = false;
	bool ack_request = false;
	bool fecn = false;
	bool becn = false;
	uint16_t pkey = kDefaultPkey;
	uint32_t dest_qpn = 0;
	Psn psn;
};

/** Datagram extended transport header. */
struct Deth {
	uint32_t qkey = 0;
	uint32_t source_qpn = 0; /* 24 bits */
};

struct Feth {
	uint8_t type = 0;  /* TERN_FLUSH_*, four bits */
	uint8_t level = 0; /* enum tern_hw_flush_level, two bits */
};

struct Reth {
	uint64_t va = 0;
	uint32_t rkey = 0;
	uint32_t length = 0;
};

struct Aeth {
	uint8_t syndrome = 0; /* IBA table 44 */
	uint32_t msn = 0;     /* 24 bits */
};

struct AtomicEth {
	uint64_t va = 0;
	uint32_t rkey = 0;
	uint64_t swap_add = 0;
	uint64_t compare = 0;
};

/** The masks that follow the AtomicEth in a masked atomic. */
struct AtomicMasks {
	uint64_t swap_add = 0; /* swap: bits to replace; add: the highest bit of each field */
	uint64_t compare = 0;  /* bits to compare; zero of an add */
};

/** The extended transport headers; the opcode tells which are valid. */
struct ExtHeaders {
	Deth deth;
	Feth feth;
	Reth reth;
	Aeth aeth;
	AtomicEth atomic;
	AtomicMasks masks;
	uint64_t atomic_ack = 0; /* original value of the remote operand */
	uint32_t imm = 0;        /* host order; big-endian on the wire */
	uint32_t srqn = 0;       /* XRCETH */
	uint32_t inv_rkey = 0;   /* IETH */
};

/** Link and network headers of a received packet. IPv4 addresses are IPv4-mapped. */
struct PathInfo {
	bool roce_v2 = false;
	Mac dmac{};
	Mac smac{};
	uint16_t vlan = kNoVlan; /* VLAN id; a priority tag (id 0) counts as none */
	uint8_t priority = 0;    /* PCP of the tag, for any id */
	Gid sgid;
	Gid dgid;
	uint8_t traffic_class = 0;
	uint8_t hop_limit = 0;
	uint16_t udp_sport = 0;

	/** Whether a switch on the way was congested: CE in the ECN field (A17.9.1). */
	bool congested() const { return roce_v2 && (traffic_class & kEcnMask) == kEcnCe; }
};

/** A parsed RoCE packet. Its ICRC is right, unless it was lent and has none. The spans point into
 * the frame. */
struct Packet {
	PathInfo path;
	Bth bth;
	ExtHeaders ext;
	const OpcodeInfo *info = nullptr;
	std::span<const std::byte> network; /* the IP header or GRH */
	Payload payload;                    /* without pad */
	/* Payload bytes of each packet of a burst (burst.h); 0 for a single packet. */
	uint32_t segment = 0;
};

enum class ParseError {
	Malformed, /* truncated, bad version or length field, bad pad count or IPv4 header checksum
	            */
	BadIcrc,
	BadOpcode,
};

/** The destination MAC of a frame, which has at least an Ethernet header. */
inline Mac destination_of(std::span<const std::byte> frame)
{
	Mac mac;
	std::memcpy(mac.data(), frame.data(), mac.size());
	return mac;
}

/** RoCEv1 by ethertype, or UDP port 4791 over IPv4 or IPv6, with up to one VLAN tag. */
bool is_roce(std::span<const std::byte> frame);

/** The engine number in the destination QPN (tern_hw.h) of a RoCE frame, which must include the
 * BTH; none for other frames. */
std::optional<uint32_t> roce_engine(std::span<const std::byte> frame);

/** The bytes of a RoCE frame from the BTH to the end of the ICRC, without Ethernet padding; empty
 * for other frames, and for one whose IP or UDP header is malformed. */
std::span<const std::byte> roce_transport(std::span<const std::byte> frame);

/** Parses a frame for which is_roce() holds. The frame must not change meanwhile. */
std::variant<Packet, ParseError> parse(std::span<const std::byte> frame);

/** As parse(), for a packet without ICRC: @head has all bytes before @payload, which has no pad;
 * with an empty @payload, @head is the whole packet. The length fields are those of the whole
 * packet. @segment: if not 0, the packet must be a burst. */
std::variant<Packet, ParseError> parse_lent(std::span<const std::byte> head, const Payload &payload,
                                            uint32_t segment = 0);

/** Builds the whole frame of @packet, which parse_lent() parsed from @head and @payload, with the
 * current content of the payload, in @out. Empty if @out is too small; kMaxRoceFrame suffices. */
std::span<const std::byte> make_whole(const Packet &packet, std::span<const std::byte> head,
                                      const Payload &payload, std::span<std::byte> out);

/** The address vector of a connection: all values of the link and network headers. */
struct AddressVector {
	bool roce_v2 = true;
	Mac smac{};
	Mac dmac{};
	uint16_t vlan = kNoVlan;
	Gid sgid;
	Gid dgid;
	uint8_t traffic_class = 0;
	uint8_t hop_limit = 64;
	uint8_t sl = 0; /* PCP of the VLAN tag */
	uint32_t flow_label = 0;
	uint16_t udp_sport = 0xc000;
};

/**
 * The link and network headers of a connection, built once; only the length fields and the IPv4
 * checksum differ between packets.
 */
class PathHeader {
public:
	PathHeader() = default;
	explicit PathHeader(const AddressVector &av);

	size_t size() const { return size_; }
	/** The full buffer; bytes after size() are undefined. */
	std::span<const std::byte, kMaxPathHeader> room() const { return bytes_; }
	/** Complement of the IPv4 checksum for a total length of zero. */
	uint16_t ipv4_sum() const { return ipv4_sum_; }
	bool roce_v2() const { return roce_v2_; }
	bool ipv4() const { return ipv4_; }
	/** Where the IP header or GRH starts. */
	size_t network_offset() const { return network_offset_; }

private:
	std::byte bytes_[kMaxPathHeader]{};
	uint16_t ipv4_sum_ = 0;
	uint8_t size_ = 0;
	uint8_t network_offset_ = 14;
	bool roce_v2_ = true;
	bool ipv4_ = false;
};

/** Bytes that pad @payload_size to a multiple of four (IBA 9.2.5). */
constexpr size_t pad_size(size_t payload_size)
{
	return (0 - payload_size) & 3;
}

/** Wire size of a frame with @head bytes before the payload. */
constexpr size_t whole_size(size_t head, size_t payload)
{
	return std::max(head + payload + pad_size(payload) + kIcrcSize, kMinEthFrame);
}

/**
 * Builds one frame in place: first the headers, then the caller fills payload(), then finish().
 * @out must hold kMaxRoceFrame bytes.
 */
class FrameBuilder {
public:
	/** Writes all headers; the opcode in @bth selects those of @ext. */
	FrameBuilder(std::span<std::byte> out, const PathHeader &path, const Bth &bth,
	             const ExtHeaders &ext, size_t payload_size);

	/** Sets the ECN field of the IP header to ECT(0). RoCEv1 has none. */
	void mark_ect();

	uint8_t opcode() const { return opcode_; }
	/** All bytes before the payload. */
	std::span<const std::byte> head() const { return out_.first(payload_offset_); }
	/** Room for the payload, exactly payload_size bytes. */
	std::span<std::byte> payload();

	/** Pads to a word; returns the frame without ICRC. */
	std::span<const std::byte> bare();
	/** Pads to a word and appends the ICRC; returns the frame, which may be shorter than
	 * kMinEthFrame. */
	std::span<const std::byte> finish();

private:
	std::span<std::byte> out_;
	size_t network_offset_;
	size_t payload_offset_;
	size_t payload_size_;
	uint8_t opcode_;
	bool roce_v2_;
	bool ipv4_;
};

/* AETH syndromes, IBA table 44: bit 7 is zero, 6:5 the kind, 4:0 credits, RNR timer or NAK code. */
inline constexpr uint8_t kAethKindMask = 0x60;
inline constexpr uint8_t kAethAck = 0x00;
inline constexpr uint8_t kAethRnrNak = 0x20;
inline constexpr uint8_t kAethNak = 0x60;
inline constexpr uint8_t kAethValueMask = 0x1f;
inline constexpr uint8_t kCreditsInvalid = 0x1f;

enum class NakCode : uint8_t {
	PsnSequenceError = 0,
	InvalidRequest = 1,
	RemoteAccessError = 2,
	RemoteOperationalError = 3,
};

/** AETH syndrome of a NAK. */
constexpr uint8_t nak_syndrome(NakCode code)
{
	return kAethNak | static_cast<uint8_t>(code);
}

/** Nanoseconds of a 5-bit RNR NAK timer code (IBA table 45; code 0 is the longest, 655.36 ms). */
uint64_t rnr_timer_ns(uint8_t code);

/** 5-bit end-to-end credit code for @recv_wqes, rounded down (IBA table 46), and its inverse:
 * UINT32_MAX for the invalid code. */
uint8_t encode_credits(uint32_t recv_wqes);
uint32_t decode_credits(uint8_t code);

} // namespace tern
