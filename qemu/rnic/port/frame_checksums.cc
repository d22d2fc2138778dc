// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/frame_checksums.h"

#include <cstring>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/inet_checksum.h"
#include "qemu/rnic/formats/tcp.h"
#include "qemu/rnic/port/frame_fields.h"

namespace tern {

namespace {

using headers::Reader;

constexpr uint16_t kRight = 0xffff;

/** Input of a TCP or UDP checksum. */
struct L4 {
	uint8_t protocol;
	std::span<const std::byte> bytes;
	InetSum pseudo; /* sum of the addresses */
};

/* UDP has its own length field and, over IPv4, may have no checksum (RFC 768, RFC 8200 8.1). */
bool cut_to_udp(L4 &l4, bool may_do_without, Checksums &checks)
{
	headers::Udp udp;
	if (!Reader(l4.bytes).take(udp) || udp.length.get() < sizeof(udp) ||
	    udp.length.get() > l4.bytes.size())
		return false;
	if (!udp.checksum.get()) {
		checks.bad |= !may_do_without;
		return false;
	}
	l4.bytes = l4.bytes.first(udp.length.get());
	return true;
}

void verify_l4(L4 l4, bool ipv4, Checksums &checks)
{
	if (l4.protocol == headers::kProtoUdp) {
		if (!cut_to_udp(l4, ipv4, checks))
			return;
	} else if (l4.protocol != headers::kProtoTcp || l4.bytes.size() < sizeof(headers::Tcp)) {
		return;
	}
	InetSum sum = l4.pseudo;
	sum.add(l4.protocol);
	sum.add(static_cast<uint32_t>(l4.bytes.size()));
	sum.add(l4.bytes);
	checks.l4_ok = sum.folded() == kRight;
	checks.bad |= !checks.l4_ok;
}

void verify_ipv4(std::span<const std::byte> packet, Checksums &checks)
{
	headers::Ipv4 ip;
	if (!Reader(packet).take(ip) || ip.version_ihl >> 4 != 4)
		return;
	const size_t header = size_t{4} * (ip.version_ihl & 0xf);
	const size_t total = ip.total_length.get();
	if (header < sizeof(ip) || total < header || total > packet.size())
		return;

	InetSum sum;
	sum.add(packet.first(header));
	checks.ip_ok = sum.folded() == kRight;
	checks.bad = !checks.ip_ok;
	if (checks.bad ||
	    (ip.fragment.get() & (headers::kIpv4MoreFragments | headers::kIpv4OffsetMask)))
		return;
	L4 l4{ip.protocol, packet.subspan(header, total - header), {}};
	l4.pseudo.add(std::as_bytes(std::span(ip.source)));
	l4.pseudo.add(std::as_bytes(std::span(ip.destination)));
	verify_l4(l4, true, checks);
}

/* Extension headers are not parsed. */
void verify_ipv6(std::span<const std::byte> packet, Checksums &checks)
{
	headers::Ipv6 ip;
	Reader in(packet);
	if (!in.take(ip) || ip.version_class_flow.get() >> headers::kIpv6VersionShift != 6 ||
	    ip.payload_length.get() > in.rest().size())
		return;
	L4 l4{ip.next_header, in.rest().first(ip.payload_length.get()), {}};
	l4.pseudo.add(std::as_bytes(std::span(ip.source.bytes)));
	l4.pseudo.add(std::as_bytes(std::span(ip.destination.bytes)));
	verify_l4(l4, false, checks);
}

} // namespace

bool put_checksum(std::span<std::byte> frame, size_t start, size_t offset)
{
	if (start + offset + sizeof(uint16_t) > frame.size())
		return false;
	InetSum sum;
	sum.add(frame.subspan(start));
	auto checksum = static_cast<uint16_t>(~sum.folded());
	/* A zero in UDP means "no checksum"; 0xffff is the same value in one's complement. In TCP
	 * it would be a wrong checksum to some receivers (RFC 1624, section 3). */
	if (!checksum && offset == offsetof(headers::Udp, checksum))
		checksum = 0xffff;
	const Be<uint16_t> value(checksum);
	std::memcpy(frame.data() + start + offset, &value, sizeof(value));
	return true;
}

Checksums verify_checksums(std::span<const std::byte> frame)
{
	Checksums checks;
	const auto inside = network_packet(frame);
	if (!inside)
		return checks;
	const auto packet = frame.subspan(inside->offset);
	if (inside->ethertype == headers::kEtherIpv4)
		verify_ipv4(packet, checks);
	else if (inside->ethertype == headers::kEtherIpv6)
		verify_ipv6(packet, checks);
	return checks;
}

} // namespace tern
