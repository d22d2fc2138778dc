// SPDX-License-Identifier: GPL-2.0-or-later
#include <cassert>
#include <cstring>

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

/* With total_length zero, and the checksum of that. */
void put_ipv4(Writer &out, const AddressVector &av)
{
	headers::Ipv4 ip{};
	ip.version_ihl = headers::kIpv4NoOptions;
	ip.tos = av.traffic_class;
	ip.fragment = headers::kIpv4DontFragment;
	ip.ttl = av.hop_limit;
	ip.protocol = headers::kProtoUdp;
	ip.source = ipv4_address(av.sgid);
	ip.destination = ipv4_address(av.dgid);
	ip.checksum = static_cast<uint16_t>(~headers::ipv4_sum(ip));
	out.put(ip);
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
 * The checksum is zero, over IPv6 too, as RFC 6935 allows for a payload that has a check of its
 * own: the ICRC. Linux rxe sends the same.
 */
void put_udp(Writer &out, const AddressVector &av)
{
	headers::Udp udp{};
	udp.source = av.udp_sport;
	udp.destination = kRoceUdpPort;
	out.put(udp);
}

size_t ext_size(const OpcodeInfo &info)
{
	return (info.xrceth ? sizeof(headers::Xrceth) : 0) +
	       (info.deth ? sizeof(headers::Deth) : 0) + (info.reth ? sizeof(headers::Reth) : 0) +
	       (info.atomic_eth ? sizeof(headers::AtomicEth) : 0) +
	       (info.aeth ? sizeof(headers::Aeth) : 0) +
	       (info.atomic_ack_eth ? sizeof(headers::AtomicAckEth) : 0) +
	       (info.imm ? sizeof(headers::Imm) : 0) + (info.ieth ? sizeof(headers::Ieth) : 0);
}

constexpr size_t pad_size(size_t payload_size)
{
	return (0 - payload_size) & headers::kBthPadMask;
}

template <typename T>
void store(std::span<std::byte> out, size_t offset, T value)
{
	const Be<T> raw = value;
	std::memcpy(out.data() + offset, &raw, sizeof(raw));
}

/* @out holds a copy of the path's bytes; @size is that of all after the network header. */
void set_ipv4_length(std::span<std::byte> out, size_t size)
{
	headers::Ipv4 ip;
	std::memcpy(&ip, out.data(), sizeof(ip));
	const auto total = static_cast<uint16_t>(sizeof(ip) + size);
	/* RFC 1624: the old length was zero */
	uint32_t sum = static_cast<uint16_t>(~ip.checksum.get()) + uint32_t{total};
	sum = (sum & 0xffff) + (sum >> 16);
	store(out, offsetof(headers::Ipv4, total_length), total);
	store(out, offsetof(headers::Ipv4, checksum), static_cast<uint16_t>(~sum));
}

void set_lengths(std::span<std::byte> out, const PathHeader &path, size_t transport_size)
{
	const size_t network = path.network_offset();
	const size_t size = transport_size + (path.roce_v2() ? sizeof(headers::Udp) : 0);

	if (path.ipv4())
		set_ipv4_length(out.subspan(network), size);
	else
		store(out, network + offsetof(headers::Ipv6, payload_length),
		      static_cast<uint16_t>(size));
	if (path.roce_v2())
		store(out, path.size() - sizeof(headers::Udp) + offsetof(headers::Udp, length),
		      static_cast<uint16_t>(size));
}

/*
 * MigReq is one: without path migration a QP stays in the state Migrated, in which all its
 * packets say so (IBA 17.2.8).
 */
headers::Bth encode(const Bth &bth, size_t pad)
{
	headers::Bth raw;
	raw.opcode = bth.opcode;
	raw.flags = static_cast<uint8_t>((bth.solicited ? headers::kBthSolicited : 0) |
	                                 headers::kBthMigReq | pad << headers::kBthPadShift);
	raw.pkey = bth.pkey;
	raw.qpn = (bth.fecn ? headers::kBthFecn : 0) | (bth.becn ? headers::kBthBecn : 0) |
	          (bth.dest_qpn & headers::kMask24);
	raw.psn = (bth.ack_request ? headers::kBthAckRequest : 0) | bth.psn.value();
	return raw;
}

headers::AtomicEth encode(const AtomicEth &atomic)
{
	return {atomic.va, atomic.rkey, atomic.swap_add, atomic.compare};
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
	if (info.reth)
		out.put(headers::Reth{ext.reth.va, ext.reth.rkey, ext.reth.length});
	if (info.atomic_eth)
		out.put(encode(ext.atomic));
	if (info.aeth)
		out.put(encode(ext.aeth));
	if (info.atomic_ack_eth)
		out.put(headers::AtomicAckEth{ext.atomic_ack});
	if (info.imm)
		out.put(headers::Imm{ext.imm});
	if (info.ieth)
		out.put(headers::Ieth{ext.inv_rkey});
}

} // namespace

/* IPv4 only if both are IPv4: a mapped address in an IPv6 header finds no peer, but tells no lie.
 */
PathHeader::PathHeader(const AddressVector &av)
        : roce_v2_(av.roce_v2), ipv4_(av.roce_v2 && av.sgid.is_ipv4() && av.dgid.is_ipv4())
{
	Writer out(bytes_);
	put_link(out, av, ethertype(roce_v2_, ipv4_));
	network_offset_ = static_cast<uint8_t>(out.size());
	if (ipv4_)
		put_ipv4(out, av);
	else
		put_ipv6(out, av, roce_v2_ ? headers::kProtoUdp : headers::kProtoIba);
	if (roce_v2_)
		put_udp(out, av);
	size_ = static_cast<uint8_t>(out.size());
}

FrameBuilder::FrameBuilder(std::span<std::byte> out, const PathHeader &path, const Bth &bth,
                           const ExtHeaders &ext, size_t payload_size)
        : out_(out), network_offset_(path.network_offset()), payload_size_(payload_size),
          roce_v2_(path.roce_v2())
{
	const OpcodeInfo &info = opcode_info(bth.opcode);
	const size_t pad = pad_size(payload_size);

	payload_offset_ = path.size() + sizeof(headers::Bth) + ext_size(info);
	assert(out.size() >= payload_offset_ + payload_size + pad + kIcrcSize);
	std::memcpy(out.data(), path.bytes().data(), path.size());
	set_lengths(out, path, payload_offset_ - path.size() + payload_size + pad + kIcrcSize);

	Writer transport(out.subspan(path.size()));
	transport.put(encode(bth, pad));
	put_ext(transport, info, ext);
}

std::span<std::byte> FrameBuilder::payload()
{
	return out_.subspan(payload_offset_, payload_size_);
}

std::span<const std::byte> FrameBuilder::finish()
{
	const size_t pad = pad_size(payload_size_);
	const size_t end = payload_offset_ + payload_size_ + pad;

	std::memset(out_.data() + end - pad, 0, pad);
	const Le<uint32_t> crc = icrc(out_.first(end).subspan(network_offset_), roce_v2_);
	std::memcpy(out_.data() + end, &crc, sizeof(crc));
	return out_.first(end + sizeof(crc));
}

} // namespace tern
