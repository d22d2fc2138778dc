/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The headers of a RoCE frame in wire format. All have alignment 1. Bit fields are composed and
 * decoded where the header is written and read.
 */
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "qemu/rnic/formats/gid.h"
#include "tern/endian.hpp"

namespace tern::headers {

inline constexpr uint16_t kEtherIpv4 = 0x0800;
inline constexpr uint16_t kEtherVlan = 0x8100;
inline constexpr uint16_t kEtherIpv6 = 0x86dd;
inline constexpr uint16_t kEtherRoce = 0x8915; /* A16.3 */

inline constexpr uint8_t kProtoUdp = 17;
inline constexpr uint8_t kProtoIba = 0x1b; /* GRH NxtHdr: the IBA transport, IBA 8.3.4 */

struct Ethernet {
	Mac dmac;
	Mac smac;
	Be<uint16_t> ethertype;
};

/** Follows an ethertype of kEtherVlan. */
struct Vlan {
	Be<uint16_t> tci; /* PCP in 15:13, VLAN id in 11:0 */
	Be<uint16_t> ethertype;
};
inline constexpr uint16_t kVlanIdMask = 0x0fff;
inline constexpr unsigned kVlanPcpShift = 13;
inline constexpr uint8_t kVlanPcpMask = 7;

struct Ipv4 {
	uint8_t version_ihl;
	uint8_t tos;
	Be<uint16_t> total_length;
	Be<uint16_t> identification;
	Be<uint16_t> fragment; /* DF, MF and the offset */
	uint8_t ttl;
	uint8_t protocol;
	Be<uint16_t> checksum;
	std::array<uint8_t, 4> source;
	std::array<uint8_t, 4> destination;
};
inline constexpr uint8_t kIpv4NoOptions = 0x45; /* version 4, five words */
inline constexpr uint16_t kIpv4DontFragment = 0x4000;
inline constexpr uint16_t kIpv4MoreFragments = 0x2000;
inline constexpr uint16_t kIpv4OffsetMask = 0x1fff;

/** An IPv6 header, and a GRH, which has the same layout (IBA 8.3). */
struct Ipv6 {
	Be<uint32_t> version_class_flow; /* 31:28, 27:20, 19:0 */
	Be<uint16_t> payload_length;
	uint8_t next_header;
	uint8_t hop_limit;
	Gid source;
	Gid destination;
};
inline constexpr unsigned kIpv6VersionShift = 28;
inline constexpr unsigned kIpv6ClassShift = 20;
inline constexpr uint32_t kIpv6FlowMask = 0xfffff;

struct Udp {
	Be<uint16_t> source;
	Be<uint16_t> destination;
	Be<uint16_t> length;
	Be<uint16_t> checksum;
};

/** Base transport header, IBA 9.2. */
struct Bth {
	uint8_t opcode;
	uint8_t flags;
	Be<uint16_t> pkey;
	Be<uint32_t> qpn; /* FECN, BECN, six reserved bits, destination QP */
	Be<uint32_t> psn; /* AckReq, seven reserved bits, PSN */
};
inline constexpr uint8_t kBthSolicited = 0x80;
inline constexpr uint8_t kBthMigReq = 0x40;
inline constexpr unsigned kBthPadShift = 4;
inline constexpr uint8_t kBthPadMask = 3;
inline constexpr uint8_t kBthVersionMask = 0x0f;
inline constexpr uint32_t kBthFecn = 0x80000000;
inline constexpr uint32_t kBthBecn = 0x40000000;
inline constexpr uint32_t kBthAckRequest = 0x80000000;
inline constexpr uint32_t kMask24 = 0x00ffffff;

/** XRC extended transport header, A14.3.3. */
struct Xrceth {
	Be<uint32_t> srqn; /* 23:0 */
};

/** Datagram extended transport header, IBA 9.3.2. */
struct Deth {
	Be<uint32_t> qkey;
	Be<uint32_t> source_qpn; /* eight reserved bits, QP number */
};

/** FLUSH extended transport header, annex A19. */
struct Feth {
	Be<uint32_t> bits; /* placement type in 3:0, selectivity level in 5:4, the rest reserved */
};
inline constexpr uint32_t kFethTypeMask = 0xf;
inline constexpr unsigned kFethLevelShift = 4;
inline constexpr uint32_t kFethLevelMask = 3;

/** RDMA extended transport header, IBA 9.3.3. */
struct Reth {
	Be<uint64_t> va;
	Be<uint32_t> rkey;
	Be<uint32_t> length;
};

/** Atomic extended transport header, IBA 9.3.4. */
struct AtomicEth {
	Be<uint64_t> va;
	Be<uint32_t> rkey;
	Be<uint64_t> swap_add;
	Be<uint64_t> compare;
};

/** Follows the AtomicETH of a masked atomic. */
struct AtomicMasks {
	Be<uint64_t> swap_add;
	Be<uint64_t> compare;
};

/** ACK extended transport header, IBA 9.3.5. */
struct Aeth {
	Be<uint32_t> syndrome_msn; /* 31:24, 23:0 */
};
inline constexpr unsigned kAethSyndromeShift = 24;

/** IBA 9.3.5.3. */
struct AtomicAckEth {
	Be<uint64_t> original;
};

/** Immediate data, IBA 9.3.6. */
struct Imm {
	Be<uint32_t> value;
};

/** Invalidate extended transport header, IBA 9.3.7. */
struct Ieth {
	Be<uint32_t> rkey;
};

/** What follows the BTH of a congestion notification packet, A17.9.3. */
struct Cnp {
	std::array<uint8_t, 16> reserved;
};

static_assert(sizeof(Ethernet) == 14 && alignof(Ethernet) == 1);
static_assert(sizeof(Vlan) == 4 && alignof(Vlan) == 1);
static_assert(sizeof(Ipv4) == 20 && alignof(Ipv4) == 1);
static_assert(sizeof(Ipv6) == 40 && alignof(Ipv6) == 1);
static_assert(sizeof(Udp) == 8 && alignof(Udp) == 1);
static_assert(sizeof(Bth) == 12 && alignof(Bth) == 1);
static_assert(sizeof(Xrceth) == 4 && alignof(Xrceth) == 1);
static_assert(sizeof(Deth) == 8 && alignof(Deth) == 1);
static_assert(sizeof(Feth) == 4 && alignof(Feth) == 1);
static_assert(sizeof(Reth) == 16 && alignof(Reth) == 1);
static_assert(sizeof(AtomicEth) == 28 && alignof(AtomicEth) == 1);
static_assert(sizeof(AtomicMasks) == 16 && alignof(AtomicMasks) == 1);
static_assert(sizeof(Aeth) == 4 && alignof(Aeth) == 1);
static_assert(sizeof(AtomicAckEth) == 8 && alignof(AtomicAckEth) == 1);
static_assert(sizeof(Imm) == 4 && alignof(Imm) == 1);
static_assert(sizeof(Ieth) == 4 && alignof(Ieth) == 1);
static_assert(sizeof(Cnp) == 16 && alignof(Cnp) == 1);

/** The one's complement sum of an IPv4 header; 0xffff if its checksum is right (RFC 1071). */
inline uint16_t ipv4_sum(const Ipv4 &header)
{
	/* The sum can be formed over wider words and folded at the end. */
	std::array<uint32_t, sizeof(Ipv4) / 4> words;
	std::memcpy(words.data(), &header, sizeof(words));
	uint64_t sum = uint64_t{words[0]} + words[1] + words[2] + words[3] + words[4];
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return std::bit_cast<Be<uint16_t>>(static_cast<uint16_t>(sum)).get();
}

/** Reads headers from the front of a byte span. */
class Reader {
public:
	explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

	/** Returns false and takes nothing if too few bytes are left. */
	template <typename T>
	bool take(T &header)
	{
		static_assert(std::is_trivially_copyable_v<T> && alignof(T) == 1);
		if (rest_.size() < sizeof(T))
			return false;
		std::memcpy(&header, rest_.data(), sizeof(T));
		rest_ = rest_.subspan(sizeof(T));
		return true;
	}
	/** As above, in place; null if too few bytes are left. */
	template <typename T>
	const T *take()
	{
		static_assert(std::is_trivially_copyable_v<T> && alignof(T) == 1);
		if (rest_.size() < sizeof(T))
			return nullptr;
		const auto *header = reinterpret_cast<const T *>(rest_.data());
		rest_ = rest_.subspan(sizeof(T));
		return header;
	}
	bool skip(size_t n)
	{
		if (rest_.size() < n)
			return false;
		rest_ = rest_.subspan(n);
		return true;
	}
	std::span<const std::byte> rest() const { return rest_; }

private:
	std::span<const std::byte> rest_;
};

/** Writes headers one after another; the caller guarantees enough room. */
class Writer {
public:
	explicit Writer(std::span<std::byte> out) : out_(out) {}

	template <typename T>
	void put(const T &header)
	{
		static_assert(std::is_trivially_copyable_v<T> && alignof(T) == 1);
		std::memcpy(out_.data() + size_, &header, sizeof(T));
		size_ += sizeof(T);
	}
	size_t size() const { return size_; }

private:
	std::span<std::byte> out_;
	size_t size_ = 0;
};

} // namespace tern::headers
