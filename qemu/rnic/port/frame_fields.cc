// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/frame_fields.h"

#include <algorithm>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/tcp.h"

namespace tern {

namespace {

using headers::Reader;

/* The first fields of TCP and UDP. */
struct Ports {
	Be<uint16_t> source;
	Be<uint16_t> destination;
};
static_assert(sizeof(Ports) == 4 && alignof(Ports) == 1);

void read_ports(Reader in, FrameFields &fields)
{
	Ports ports;
	if ((fields.key.ip_proto != headers::kProtoTcp &&
	     fields.key.ip_proto != headers::kProtoUdp) ||
	    !in.take(ports))
		return;
	fields.has_ports = true;
	fields.key.src_port = ports.source;
	fields.key.dst_port = ports.destination;
}

void read_ipv4(Reader in, FrameFields &fields)
{
	headers::Ipv4 ip;
	if (!in.take(ip) || ip.version_ihl >> 4 != 4)
		return;
	fields.ip_version = 4;
	fields.key.tos = ip.tos;
	fields.key.ip_proto = ip.protocol;
	std::ranges::copy(ip.source, fields.key.src_ip);
	std::ranges::copy(ip.destination, fields.key.dst_ip);
	fields.fragment =
	        ip.fragment.get() & (headers::kIpv4MoreFragments | headers::kIpv4OffsetMask);
	const size_t size = size_t{4} * (ip.version_ihl & 0xf);
	if (size >= sizeof(ip) && in.skip(size - sizeof(ip)) &&
	    !(ip.fragment.get() & headers::kIpv4OffsetMask))
		read_ports(in, fields);
}

/* Extension headers are not parsed. */
void read_ipv6(Reader in, FrameFields &fields)
{
	headers::Ipv6 ip;
	if (!in.take(ip) || ip.version_class_flow.get() >> headers::kIpv6VersionShift != 6)
		return;
	fields.ip_version = 6;
	fields.key.tos =
	        static_cast<uint8_t>(ip.version_class_flow.get() >> headers::kIpv6ClassShift);
	fields.key.ip_proto = ip.next_header;
	std::ranges::copy(ip.source.bytes, fields.key.src_ip);
	std::ranges::copy(ip.destination.bytes, fields.key.dst_ip);
	read_ports(in, fields);
}

} // namespace

FrameFields read_fields(std::span<const std::byte> frame)
{
	FrameFields fields;
	Reader in(frame);
	headers::Ethernet eth;
	if (!in.take(eth))
		return fields;
	std::ranges::copy(eth.dmac, fields.key.dmac);
	std::ranges::copy(eth.smac, fields.key.smac);
	uint16_t ethertype = eth.ethertype.get();
	headers::Vlan tag;
	if (ethertype == headers::kEtherVlan && in.take(tag)) {
		fields.has_vlan = true;
		fields.key.vlan_tci = tag.tci;
		ethertype = tag.ethertype.get();
	}
	fields.key.ethertype = ethertype;
	if (ethertype == headers::kEtherIpv4)
		read_ipv4(in, fields);
	else if (ethertype == headers::kEtherIpv6)
		read_ipv6(in, fields);
	return fields;
}

std::optional<NetworkPacket> network_packet(std::span<const std::byte> frame)
{
	Reader in(frame);
	headers::Ethernet eth;
	if (!in.take(eth))
		return std::nullopt;
	if (eth.ethertype.get() != headers::kEtherVlan)
		return NetworkPacket{eth.ethertype.get(), sizeof(eth)};
	headers::Vlan tag;
	if (!in.take(tag))
		return std::nullopt;
	return NetworkPacket{tag.ethertype.get(), sizeof(eth) + sizeof(tag)};
}

} // namespace tern
