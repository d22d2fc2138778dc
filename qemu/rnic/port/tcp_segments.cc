// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/tcp_segments.h"

#include <cstring>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/inet_checksum.h"
#include "qemu/rnic/formats/tcp.h"
#include "qemu/rnic/port/frame_checksums.h"
#include "qemu/rnic/port/frame_fields.h"

namespace tern {

namespace {

using headers::Reader;

template <typename Header>
Header load(std::span<const std::byte> frame, size_t at)
{
	Header header;
	std::memcpy(&header, frame.data() + at, sizeof(header));
	return header;
}

template <typename Header>
void store(std::span<std::byte> frame, size_t at, const Header &header)
{
	std::memcpy(frame.data() + at, &header, sizeof(header));
}

/* @header has all bytes before the TCP header. */
bool is_tcp_ipv4(std::span<const std::byte> header)
{
	headers::Ipv4 ip;
	return Reader(header).take(ip) && ip.version_ihl >> 4 == 4 &&
	       size_t{4} * (ip.version_ihl & 0xf) == header.size() &&
	       ip.protocol == headers::kProtoTcp;
}

/* Extension headers are not parsed. */
bool is_tcp_ipv6(std::span<const std::byte> header)
{
	headers::Ipv6 ip;
	return Reader(header).take(ip) &&
	       ip.version_class_flow.get() >> headers::kIpv6VersionShift == 6 &&
	       (header.size() > sizeof(ip) || ip.next_header == headers::kProtoTcp);
}

/* Each segment has another identification and length, and thus another header checksum. */
void finish_ipv4(std::span<std::byte> frame, const TcpHeaders &at, size_t index)
{
	auto ip = load<headers::Ipv4>(frame, at.ip);
	ip.total_length = static_cast<uint16_t>(frame.size() - at.ip);
	ip.identification = static_cast<uint16_t>(ip.identification.get() + index);
	ip.checksum = 0;
	store(frame, at.ip, ip);
	InetSum sum;
	sum.add(frame.subspan(at.ip, at.tcp - at.ip));
	ip.checksum = static_cast<uint16_t>(~sum.folded());
	store(frame, at.ip, ip);
}

void finish_ipv6(std::span<std::byte> frame, const TcpHeaders &at)
{
	auto ip = load<headers::Ipv6>(frame, at.ip);
	ip.payload_length = static_cast<uint16_t>(frame.size() - at.ip - sizeof(ip));
	store(frame, at.ip, ip);
}

/* CWR is only in the first segment, FIN and PSH only in the last. */
uint8_t flags_of(uint8_t flags, const TcpSegment &segment)
{
	if (segment.index)
		flags &= static_cast<uint8_t>(~headers::kTcpCwr);
	if (!segment.last())
		flags &= static_cast<uint8_t>(~(headers::kTcpFin | headers::kTcpPsh));
	return flags;
}

} // namespace

std::optional<TcpHeaders> find_tcp_headers(std::span<const std::byte> head, size_t tcp)
{
	const auto inside = network_packet(head);
	if (!inside || tcp < inside->offset || tcp + sizeof(headers::Tcp) > head.size())
		return std::nullopt;
	const auto ip = head.subspan(inside->offset, tcp - inside->offset);
	const bool ipv4 = inside->ethertype == headers::kEtherIpv4;
	if (!(ipv4 ? is_tcp_ipv4(ip) : inside->ethertype == headers::kEtherIpv6 && is_tcp_ipv6(ip)))
		return std::nullopt;
	const size_t size = size_t{4} * (load<headers::Tcp>(head, tcp).data_offset >> 4);
	if (size < sizeof(headers::Tcp))
		return std::nullopt;
	return TcpHeaders{inside->offset, tcp, tcp + size, ipv4};
}

void finish_segment(std::span<std::byte> frame, const TcpHeaders &at, const TcpSegment &segment)
{
	if (at.ipv4)
		finish_ipv4(frame, at, segment.index);
	else
		finish_ipv6(frame, at);

	auto tcp = load<headers::Tcp>(frame, at.tcp);
	tcp.sequence = tcp.sequence.get() + static_cast<uint32_t>(segment.offset);
	tcp.flags = flags_of(tcp.flags, segment);
	/* The pseudo header was summed with the length of the whole: correct it. */
	const size_t header = at.payload - at.tcp;
	InetSum pseudo(tcp.checksum.get());
	pseudo.subtract(static_cast<uint32_t>(header + segment.whole));
	pseudo.add(static_cast<uint32_t>(frame.size() - at.tcp));
	tcp.checksum = pseudo.folded();
	store(frame, at.tcp, tcp);
	put_checksum(frame, at.tcp, offsetof(headers::Tcp, checksum));
}

} // namespace tern
