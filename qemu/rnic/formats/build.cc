// SPDX-License-Identifier: GPL-2.0-or-later
#include <cassert>
#include <cstring>

#include "qemu/rnic/formats/burst.h"
#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/icrc.h"
#include "qemu/rnic/formats/packet.h"

namespace tern {

namespace {

using headers::Writer;

uint16_t ethertype(bool roce_v2, bool ipv4)
{
	if (!roce_v2)
		return headers::kEtherRoce;
	return ipv4 ? headers::kEtherIpv4 : headers::kEtherIpv6;
}

void put_link(Writer &out, const AddressVector &av, uint16_t type)
{
	if (av.vlan == kNoVlan) {
		out.put(headers::Ethernet{av.dmac, av.smac, type});
		return;
	}
	const auto pcp =
	        static_cast<uint16_t>((av.sl & headers::kVlanPcpMask) << headers::kVlanPcpShift);
	const auto tci = static_cast<uint16_t>(pcp | (av.vlan & headers::kVlanIdMask));
	out.put(headers::Ethernet{av.dmac, av.smac, headers::kEtherVlan});
	out.put(headers::Vlan{tci, type});
}

std::array<uint8_t, 4> ipv4_address(const Gid &gid)
{
	return {gid.bytes[12], gid.bytes[13], gid.bytes[14], gid.bytes[15]};
}

/* Writes the header with total_length zero and returns the complement of its checksum. */
uint16_t put_ipv4(Writer &out, const AddressVector &av)
{
	headers::Ipv4 ip{};
	ip.version_ihl = headers::kIpv4NoOptions;
	ip.tos = av.traffic_class;
	ip.fragment = headers::kIpv4DontFragment;
	ip.ttl = av.hop_limit;
	ip.protocol = headers::kProtoUdp;
	ip.source = ipv4_address(av.sgid);
	ip.destination = ipv4_address(av.dgid);
	const uint16_t sum = headers::ipv4_sum(ip);
	ip.checksum = static_cast<uint16_t>(~sum);
	out.put(ip);
	return sum;
}

void put_ipv6(Writer &out, const AddressVector &av, uint8_t next_header)
{
	headers::Ipv6 ip{};
	ip.version_class_flow = 6u << headers::kIpv6VersionShift |
	                        uint32_t{av.traffic_class} << headers::kIpv6ClassShift |
	                        (av.flow_label & headers::kIpv6FlowMask);
	ip.next_header = next_header;
	ip.hop_limit = av.hop_limit;
	ip.source = av.sgid;
	ip.destination = av.dgid;
	out.put(ip);
}

/*
 * The UDP checksum is zero, over IPv6 too: RFC 6935 allows that for a payload with its own check,
 * here the ICRC. Linux rxe sends the same.
 */
void put_udp(Writer &out, const AddressVector &av)
{
	headers::Udp udp{};
	udp.source = av.udp_sport;
	udp.destination = kRoceUdpPort;
	out.put(udp);
}

/* The properties of a path that the length fields depend on. */
struct PathShape {
	size_t network_offset;
	size_t size;
	bool roce_v2;
	bool ipv4;
	uint16_t ipv4_sum;
};

template <typename T>
void store(std::span<std::byte> out, size_t offset, T value)
{
	const Be<T> raw = value;
	std::memcpy(out.data() + offset, &raw, sizeof(raw));
}

/* @out is the header; @size counts the bytes after it; @ipv4_sum is the complement of the checksum
 * for a total length of zero. */
void set_ipv4_length(std::span<std::byte> out, size_t size, uint16_t ipv4_sum)
{
	const auto total = static_cast<uint16_t>(sizeof(headers::Ipv4) + size);
	/* RFC 1624; the old length was zero */
	uint32_t sum = ipv4_sum + uint32_t{total};
	sum = (sum & 0xffff) + (sum >> 16);
	store(out, offsetof(headers::Ipv4, total_length), total);
	store(out, offsetof(headers::Ipv4, checksum), static_cast<uint16_t>(~sum));
}

void set_lengths(std::span<std::byte> out, const PathShape &path, size_t transport_size)
{
	const size_t size = transport_size + (path.roce_v2 ? sizeof(headers::Udp) : 0);

	if (path.ipv4)
		set_ipv4_length(out.subspan(path.network_offset), size, path.ipv4_sum);
	else
		store(out, path.network_offset + offsetof(headers::Ipv6, payload_length),
		      static_cast<uint16_t>(size));
	if (path.roce_v2)
		store(out, path.size - sizeof(headers::Udp) + offsetof(headers::Udp, length),
		      static_cast<uint16_t>(size));
}

/*
 * MigReq is always one: without path migration a QP stays in state Migrated, in which all its
 * packets set it (IBA 17.2.8).
 */
void put_bth(Writer &out, const Bth &bth, size_t pad)
{
	const auto flags = static_cast<uint8_t>((bth.solicited ? headers::kBthSolicited : 0) |
	                                        headers::kBthMigReq | pad << headers::kBthPadShift);
	const uint32_t qpn = (bth.fecn ? headers::kBthFecn : 0) |
	                     (bth.becn ? headers::kBthBecn : 0) | (bth.dest_qpn & headers::kMask24);
	/* Composed in a register: a struct that is filled by field and then copied would stall on
	 * store forwarding. */
	out.put(Be<uint64_t>(uint64_t{bth.opcode} << 56 | uint64_t{flags} << 48 |
	                     uint64_t{bth.pkey} << 32 | qpn));
	out.put(Be<uint32_t>((bth.ack_request ? headers::kBthAckRequest : 0) | bth.psn.value()));
}

headers::AtomicEth encode(const AtomicEth &atomic)
{
	return {atomic.va, atomic.rkey, atomic.swap_add, atomic.compare};
}

headers::Feth encode(const Feth &feth)
{
	return {feth.type | uint32_t{feth.level} << headers::kFethLevelShift};
}

headers::Aeth encode(const Aeth &aeth)
{
	return {uint32_t{aeth.syndrome} << headers::kAethSyndromeShift |
	        (aeth.msn & headers::kMask24)};
}

void put_ext(Writer &out, const OpcodeInfo &info, const ExtHeaders &ext)
{
	if (info.xrceth)
		out.put(headers::Xrceth{ext.srqn & headers::kMask24});
	if (info.deth)
		out.put(headers::Deth{ext.deth.qkey, ext.deth.source_qpn & headers::kMask24});
	if (info.feth)
		out.put(encode(ext.feth));
	if (info.reth)
		out.put(headers::Reth{ext.reth.va, ext.reth.rkey, ext.reth.length});
	if (info.atomic_eth)
		out.put(encode(ext.atomic));
	if (info.atomic_masks)
		out.put(headers::AtomicMasks{ext.masks.swap_add, ext.masks.compare});
	if (info.aeth)
		out.put(encode(ext.aeth));
	if (info.atomic_ack_eth)
		out.put(headers::AtomicAckEth{ext.atomic_ack});
	if (info.imm)
		out.put(headers::Imm{ext.imm});
	if (info.ieth)
		out.put(headers::Ieth{ext.inv_rkey});
	if (info.cnp)
		out.put(headers::Cnp{});
}

/* Writes the length fields and all headers between the path's and the payload of @size bytes;
 * returns the payload's offset. */
size_t put_transport(std::span<std::byte> out, const PathShape &path, const Bth &bth,
                     const ExtHeaders &ext, size_t size)
{
	const OpcodeInfo &info = opcode_info(bth.opcode);
	const size_t pad = pad_size(size);
	const size_t offset = path.size + sizeof(headers::Bth) + info.ext_size;
	assert(out.size() >= offset + size + pad + kIcrcSize);
	set_lengths(out, path, offset - path.size + size + pad + kIcrcSize);

	Writer transport(out.subspan(path.size));
	put_bth(transport, bth, pad);
	put_ext(transport, info, ext);
	return offset;
}

/* The path of a received packet whose headers are @head. */
PathShape shape_of(const Packet &packet, std::span<const std::byte> head)
{
	PathShape shape{};
	shape.network_offset = static_cast<size_t>(packet.network.data() - head.data());
	shape.size = head.size() - sizeof(headers::Bth) - packet.info->ext_size;
	shape.roce_v2 = packet.path.roce_v2;
	shape.ipv4 = packet.network.size() == sizeof(headers::Ipv4);
	if (shape.ipv4) {
		headers::Ipv4 ip;
		std::memcpy(&ip, packet.network.data(), sizeof(ip));
		ip.total_length = 0;
		ip.checksum = 0;
		shape.ipv4_sum = headers::ipv4_sum(ip);
	}
	return shape;
}

/* Pads the payload of @size bytes that ends at @end; returns the frame without the ICRC. */
std::span<const std::byte> add_pad(std::span<std::byte> out, size_t end, size_t size)
{
	/* Clears four bytes, as there is room for pad and ICRC. */
	std::memset(out.data() + end, 0, kIcrcSize);
	return out.first(end + pad_size(size));
}

/* @end: end of the pad. Returns the whole frame. */
std::span<const std::byte> add_icrc(std::span<std::byte> out, size_t end, size_t network_offset,
                                    bool roce_v2)
{
	const Le<uint32_t> crc = icrc(out.first(end).subspan(network_offset), roce_v2);
	std::memcpy(out.data() + end, &crc, sizeof(crc));
	return out.first(end + sizeof(crc));
}

} // namespace

/* IPv4 only if both addresses are IPv4. A mixed pair is sent over IPv6, where no peer accepts the
 * mapped address. */
PathHeader::PathHeader(const AddressVector &av)
        : roce_v2_(av.roce_v2), ipv4_(av.roce_v2 && av.sgid.is_ipv4() && av.dgid.is_ipv4())
{
	Writer out(bytes_);
	put_link(out, av, ethertype(roce_v2_, ipv4_));
	network_offset_ = static_cast<uint8_t>(out.size());
	if (ipv4_)
		ipv4_sum_ = put_ipv4(out, av);
	else
		put_ipv6(out, av, roce_v2_ ? headers::kProtoUdp : headers::kProtoIba);
	if (roce_v2_)
		put_udp(out, av);
	size_ = static_cast<uint8_t>(out.size());
}

FrameBuilder::FrameBuilder(std::span<std::byte> out, const PathHeader &path, const Bth &bth,
                           const ExtHeaders &ext, size_t payload_size)
        : out_(out), network_offset_(path.network_offset()), payload_size_(payload_size),
          opcode_(bth.opcode), roce_v2_(path.roce_v2()), ipv4_(path.ipv4())
{
	/* Copies the full size: a constant length is faster. */
	std::memcpy(out.data(), path.room().data(), kMaxPathHeader);
	payload_offset_ = put_transport(
	        out,
	        {path.network_offset(), path.size(), path.roce_v2(), path.ipv4(), path.ipv4_sum()},
	        bth, ext, payload_size);
}

void FrameBuilder::mark_ect()
{
	if (!roce_v2_)
		return;
	const auto network = out_.subspan(network_offset_);
	if (!ipv4_) {
		/* Bits 23:16 of the first word; in their upper half is the lower one of the traffic
		 * class. */
		network[1] &= ~std::byte{kEcnMask << 4};
		network[1] |= std::byte{kEcnEct0 << 4};
		return;
	}
	auto &tos = network[offsetof(headers::Ipv4, tos)];
	const auto before = std::to_integer<uint32_t>(tos);
	const uint32_t now = (before & ~uint32_t{kEcnMask}) | kEcnEct0;
	tos = static_cast<std::byte>(now);
	Be<uint16_t> checksum;
	std::memcpy(&checksum, &network[offsetof(headers::Ipv4, checksum)], sizeof(checksum));
	/* RFC 1624, equation 3: the complement of the sum with one word replaced. */
	uint32_t sum = static_cast<uint16_t>(~checksum.get()) + (0xffff - before) + now;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	store(out_, network_offset_ + offsetof(headers::Ipv4, checksum),
	      static_cast<uint16_t>(~sum));
}

std::span<std::byte> FrameBuilder::payload()
{
	return out_.subspan(payload_offset_, payload_size_);
}

std::span<const std::byte> FrameBuilder::bare()
{
	return add_pad(out_, payload_offset_ + payload_size_, payload_size_);
}

std::span<const std::byte> FrameBuilder::finish()
{
	return add_icrc(out_, bare().size(), network_offset_, roce_v2_);
}

std::span<const std::byte> make_whole(const Packet &packet, std::span<const std::byte> head,
                                      const Payload &payload, std::span<std::byte> out)
{
	const size_t size = payload.size();
	if (head.size() + size + pad_size(size) + kIcrcSize > out.size())
		return {};
	std::memcpy(out.data(), head.data(), head.size());
	payload.copy_to(out.subspan(head.size()));
	return add_icrc(out, add_pad(out, head.size() + size, size).size(),
	                static_cast<size_t>(packet.network.data() - head.data()),
	                packet.path.roce_v2);
}

/* ---- bursts ---- */

size_t burst_size(uint8_t opcode, size_t head, size_t payload, uint32_t segment)
{
	const OpcodeInfo &whole = opcode_info(opcode);
	const uint32_t packets = segments_of(payload, segment);
	const auto ext = [&](bool first, bool last) {
		const Opcode part = part_of(whole.kind, first, last);
		return size_t{opcode_info(opcode_of(service_of(opcode), part)).ext_size};
	};
	return packets * (head - whole.ext_size + kIcrcSize) + payload + pad_size(payload) +
	       ext(whole.first, false) + (packets - 2) * ext(false, false) + ext(false, whole.last);
}

std::span<const std::byte> make_whole(const Packet &burst, uint32_t i,
                                      std::span<const std::byte> head, std::span<std::byte> out)
{
	const Packet packet = packet_of(burst, i);
	const PathShape path = shape_of(burst, head);
	const size_t size = packet.payload.size();
	std::memcpy(out.data(), head.data(), path.size);
	const size_t offset = put_transport(out, path, packet.bth, packet.ext, size);
	packet.payload.copy_to(out.subspan(offset));
	return add_icrc(out, add_pad(out, offset + size, size).size(), path.network_offset,
	                path.roce_v2);
}

} // namespace tern
