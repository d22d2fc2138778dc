// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/fault.h"

#include <cstring>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/packet.h"

namespace tern::wire {

namespace {

constexpr uint64_t kNsPerUs = 1000;

/** The IP header of a frame behind up to one VLAN tag. */
struct IpHeader {
	uint16_t ethertype = 0;
	size_t offset = 0;
	uint8_t traffic_class = 0;
};

/* Reads the traffic class of IPv4 without options and of IPv6; 0 if there is none. */
IpHeader find_ip(std::span<const std::byte> frame)
{
	headers::Reader in(frame);
	headers::Ethernet link;
	if (!in.take(link))
		return {};
	IpHeader found{.ethertype = link.ethertype.get()};
	headers::Vlan tag;
	if (found.ethertype == headers::kEtherVlan && in.take(tag))
		found.ethertype = tag.ethertype.get();
	found.offset = frame.size() - in.rest().size();
	headers::Ipv4 v4;
	headers::Ipv6 v6;
	if (found.ethertype == headers::kEtherIpv4 && in.take(v4) &&
	    v4.version_ihl == headers::kIpv4NoOptions)
		found.traffic_class = v4.tos;
	else if (found.ethertype == headers::kEtherIpv6 && in.take(v6))
		found.traffic_class = static_cast<uint8_t>(v6.version_class_flow.get() >>
		                                           headers::kIpv6ClassShift);
	return found;
}

/* ECT(0) or ECT(1) */
bool is_capable(const IpHeader &ip)
{
	const uint8_t ecn = ip.traffic_class & kEcnMask;
	return ecn && ecn != kEcnCe;
}

void mark_ipv4(std::byte *at)
{
	headers::Ipv4 ip;
	std::memcpy(&ip, at, sizeof(ip));
	ip.tos |= kEcnCe;
	ip.checksum = 0;
	ip.checksum = static_cast<uint16_t>(~headers::ipv4_sum(ip));
	std::memcpy(at, &ip, sizeof(ip));
}

void mark_ipv6(std::byte *at)
{
	headers::Ipv6 ip;
	std::memcpy(&ip, at, sizeof(ip));
	ip.version_class_flow = ip.version_class_flow.get() | uint32_t{kEcnCe}
	                                                              << headers::kIpv6ClassShift;
	std::memcpy(at, &ip, sizeof(ip));
}

std::string amount_of(const FaultEvent &event)
{
	if (event.fault == Fault::Delay)
		return " " + std::to_string(event.amount / kNsPerUs) + "us";
	if (event.fault == Fault::Reorder)
		return " " + std::to_string(event.amount);
	return {};
}

} // namespace

std::string_view fault_name(Fault fault)
{
	static constexpr std::string_view kNames[] = {"count",     "drop",  "corrupt", "mark",
	                                              "duplicate", "delay", "reorder"};
	return kNames[static_cast<size_t>(fault)];
}

std::string cause_of(const FaultEvent &event)
{
	if (event.rule == FaultEvent::kNoRoom)
		return "no room";
	return event.rule ? "rule " + std::to_string(event.rule) : "by percentage";
}

std::string to_string(const FaultEvent &event)
{
	return "fault: " + std::string(fault_name(event.fault)) + amount_of(event) + ", " +
	       cause_of(event) + ", to port " + std::to_string(event.to);
}

bool can_mark(std::span<const std::byte> frame)
{
	return is_capable(find_ip(frame));
}

bool mark(std::span<std::byte> frame)
{
	const IpHeader ip = find_ip(frame);
	if (!is_capable(ip))
		return false;
	std::byte *header = frame.data() + ip.offset;
	if (ip.ethertype == headers::kEtherIpv4)
		mark_ipv4(header);
	else
		mark_ipv6(header);
	return true;
}

} // namespace tern::wire
