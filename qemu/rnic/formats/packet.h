/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCE packets as bytes: pure functions, no state. Layouts: IBA vol. 1 chapter 9
 * (BTH, RETH, AETH, AtomicETH), annex A16 (RoCEv1) and A17 (RoCEv2).
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "qemu/rnic/formats/gid.h"
#include "qemu/rnic/formats/opcode.h"
#include "qemu/rnic/formats/psn.h"

namespace tern {

inline constexpr uint16_t kRoceUdpPort = 4791;
inline constexpr uint16_t kNoVlan = 0xffff;
inline constexpr uint16_t kDefaultPkey = 0xffff;
/** Ethernet + VLAN + IPv6 or GRH + UDP. */
inline constexpr size_t kMaxPathHeader = 14 + 4 + 40 + 8;
/** BTH + XRCETH + AtomicETH is the longest. */
inline constexpr size_t kMaxTransportHeader = 12 + 4 + 28;
inline constexpr size_t kIcrcSize = 4;
inline constexpr size_t kMaxRoceFrame = kMaxPathHeader + kMaxTransportHeader + 4096 + kIcrcSize;
/** Ethernet + VLAN + the largest payload of the Ethernet function. */
inline constexpr size_t kMaxEthFrame = 14 + 4 + 9000;

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

/** The extended transport headers; those are valid which the opcode calls for. */
struct ExtHeaders {
	Deth deth;
	Reth reth;
	Aeth aeth;
	AtomicEth atomic;
	uint64_t atomic_ack = 0; /* the original value of the remote operand */
	uint32_t imm = 0;        /* as a number; big-endian on the wire */
	uint32_t srqn = 0;       /* XRCETH */
	uint32_t inv_rkey = 0;   /* IETH */
};

/** How a packet came: link and network headers. IPv4 addresses are IPv4-mapped. */
struct PathInfo {
	bool roce_v2 = false;
	Mac dmac{};
	Mac smac{};
	uint16_t vlan = kNoVlan; /* VLAN id; a priority tag (id 0) is no VLAN */
	uint8_t priority = 0;    /* PCP of the tag, whatever its id */
	Gid sgid;
	Gid dgid;
	uint8_t traffic_class = 0;
	uint8_t hop_limit = 0;
	uint16_t udp_sport = 0;
};

/** A RoCE packet that was parsed and whose ICRC is right. The spans point into the frame. */
struct Packet {
	PathInfo path;
	Bth bth;
	ExtHeaders ext;
	const OpcodeInfo *info = nullptr;
	std::span<const std::byte> network; /* the IP header or GRH */
	std::span<const std::byte> payload; /* without pad */
};

enum class ParseError {
	Malformed, /* truncated, bad version or length field, bad pad count or IPv4 header checksum
	            */
	BadIcrc,
	BadOpcode,
};

/** RoCEv1 by ethertype, or UDP to port 4791 over IPv4 or IPv6; one VLAN tag is looked through. */
bool is_roce(std::span<const std::byte> frame);

/** Takes a frame apart for which is_roce() holds. */
std::variant<Packet, ParseError> parse(std::span<const std::byte> frame);

/** The address vector of a connection, with all that the link and network headers need. */
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
 * The link and network headers of a connection as bytes, made once; only the lengths
 * and the IPv4 checksum differ between its packets.
 */
class PathHeader {
public:
	PathHeader() = default;
	explicit PathHeader(const AddressVector &av);

	size_t size() const { return size_; }
	std::span<const std::byte> bytes() const { return {bytes_, size_}; }
	bool roce_v2() const { return roce_v2_; }
	bool ipv4() const { return ipv4_; }
	/** Where the IP header or GRH starts. */
	size_t network_offset() const { return network_offset_; }

private:
	std::byte bytes_[kMaxPathHeader]{};
	uint8_t size_ = 0;
	uint8_t network_offset_ = 14;
	bool roce_v2_ = true;
	bool ipv4_ = false;
};

/**
 * Builds one frame in place: headers first, then the caller fills payload(), then finish().
 * @out must hold kMaxRoceFrame bytes.
 */
class FrameBuilder {
public:
	/** Writes all headers; @bth's opcode says which of @ext go in. */
	FrameBuilder(std::span<std::byte> out, const PathHeader &path, const Bth &bth,
	             const ExtHeaders &ext, size_t payload_size);

	/** Where the payload goes, exactly payload_size bytes. */
	std::span<std::byte> payload();

	/** Pads to a word and computes the ICRC; the whole frame, which may be shorter than
	 * Ethernet's 60 bytes. */
	std::span<const std::byte> finish();

private:
	std::span<std::byte> out_;
	size_t network_offset_;
	size_t payload_offset_;
	size_t payload_size_;
	bool roce_v2_;
};

/* AETH syndromes, IBA table 44: 7 is zero, 6:5 the kind, 4:0 credits, RNR timer or NAK code. */
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

/** Nanoseconds of a 5-bit RNR NAK timer code (IBA table 45; code 0 is the longest, 655.36 ms). */
uint64_t rnr_timer_ns(uint8_t code);

/** 5-bit end-to-end credit code for @recv_wqes, rounded down (IBA table 46), and back: UINT32_MAX
 * for the invalid code. */
uint8_t encode_credits(uint32_t recv_wqes);
uint32_t decode_credits(uint8_t code);

} // namespace tern
