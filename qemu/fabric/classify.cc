// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/classify.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/inet_checksum.h"
#include "qemu/rnic/formats/pause.h"

namespace tern::fabric {

using namespace headers;

namespace {

constexpr unsigned kClassSelectorShift = 5; /* of a traffic class */
constexpr uint8_t kEcnMask = 3;
constexpr uint8_t kCongestionExperienced = 3;

/* A @T at @offset, or null beyond the end. */
template <typename T, typename Byte>
auto *at(std::span<Byte> bytes, size_t offset)
{
	using Const = std::conditional_t<std::is_const_v<Byte>, const T, T>;
	return offset + sizeof(T) <= bytes.size() ? reinterpret_cast<Const *>(bytes.data() + offset)
	                                          : nullptr;
}

/** Where the network header starts, what it is, and the tag before it. */
struct Network {
	uint16_t ethertype = 0;
	size_t offset = 0;
	std::optional<uint8_t> pcp;
};

Network network_of(std::span<const std::byte> frame)
{
	const auto *ethernet = at<Ethernet>(frame, 0);
	if (!ethernet)
		return {};
	const auto *vlan = at<Vlan>(frame, sizeof(Ethernet));
	if (ethernet->ethertype.get() != kEtherVlan || !vlan)
		return {ethernet->ethertype.get(), sizeof(Ethernet), std::nullopt};
	return {vlan->ethertype.get(), sizeof(Ethernet) + sizeof(Vlan),
	        static_cast<uint8_t>(vlan->tci.get() >> kVlanPcpShift)};
}

/* SplitMix64's last step. */
uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t hash_of(uint64_t hash, std::span<const std::byte> bytes)
{
	for (size_t i = 0; i < bytes.size(); i += sizeof(uint32_t)) {
		uint32_t word = 0;
		std::memcpy(&word, bytes.data() + i, std::min(sizeof(word), bytes.size() - i));
		hash = mix(hash + word + 1);
	}
	return hash;
}

/* Addresses @from to @to of the network header, and the UDP ports behind it if there are any. */
uint64_t hash_addresses(uint64_t seed, std::span<const std::byte> frame, size_t from, size_t to,
                        bool udp, size_t ports)
{
	if (to > frame.size())
		return 0;
	const uint64_t hash = hash_of(mix(seed), frame.subspan(from, to - from));
	const bool whole = udp && ports + 2 * sizeof(uint16_t) <= frame.size();
	return whole ? hash_of(hash, frame.subspan(ports, 2 * sizeof(uint16_t))) : hash;
}

} // namespace

uint8_t priority_of(std::span<const std::byte> frame)
{
	const Network network = network_of(frame);
	if (network.pcp)
		return *network.pcp;
	const auto *v4 = at<Ipv4>(frame, network.offset);
	if (network.ethertype == kEtherIpv4 && v4)
		return v4->tos >> kClassSelectorShift;
	const auto *v6 = at<Ipv6>(frame, network.offset);
	if (network.ethertype == kEtherIpv6 && v6)
		return v6->version_class_flow.get() >> (kIpv6ClassShift + kClassSelectorShift) &
		       (kPriorities - 1);
	return 0;
}

uint64_t flow_hash(std::span<const std::byte> frame, uint64_t seed)
{
	const Network network = network_of(frame);
	const size_t ip = network.offset;
	const auto *v4 = at<Ipv4>(frame, ip);
	if (network.ethertype == kEtherIpv4 && v4) {
		const size_t header = (v4->version_ihl & 0xf) * sizeof(uint32_t);
		/* Only the first fragment has ports, but all are to take the same path. */
		const bool fragment = v4->fragment.get() & (kIpv4MoreFragments | kIpv4OffsetMask);
		return hash_addresses(seed, frame, ip + offsetof(Ipv4, source), ip + sizeof(Ipv4),
		                      v4->protocol == kProtoUdp && !fragment, ip + header);
	}
	const auto *v6 = at<Ipv6>(frame, ip);
	if (network.ethertype == kEtherIpv6 && v6)
		return hash_addresses(seed, frame, ip + offsetof(Ipv6, source), ip + sizeof(Ipv6),
		                      v6->next_header == kProtoUdp, ip + sizeof(Ipv6));
	return hash_addresses(seed, frame, 0, offsetof(Ethernet, ethertype), false, 0);
}

namespace {

Ecn mark(Ipv4 &ip)
{
	const uint16_t before = static_cast<uint16_t>(ip.version_ihl << 8 | ip.tos);
	ip.tos |= kCongestionExperienced;
	const uint16_t after = static_cast<uint16_t>(ip.version_ihl << 8 | ip.tos);
	/* RFC 1624 updates the checksum by the difference of the old and the new word. */
	InetSum sum(static_cast<uint16_t>(~ip.checksum.get()));
	sum.add(uint32_t{static_cast<uint16_t>(~before)});
	sum.add(uint32_t{after});
	ip.checksum = static_cast<uint16_t>(~sum.folded());
	return Ecn::Marked;
}

Ecn capability(uint8_t traffic_class)
{
	switch (traffic_class & kEcnMask) {
	case 0:
		return Ecn::NotCapable;
	case kCongestionExperienced:
		return Ecn::WasMarked;
	default:
		return Ecn::Marked;
	}
}

/* What the IP header of @frame says of ECN. */
Ecn capability(std::span<const std::byte> frame)
{
	const Network network = network_of(frame);
	const auto *v4 = at<Ipv4>(frame, network.offset);
	if (network.ethertype == kEtherIpv4 && v4)
		return capability(v4->tos);
	const auto *v6 = at<Ipv6>(frame, network.offset);
	if (network.ethertype == kEtherIpv6 && v6)
		return capability(
		        static_cast<uint8_t>(v6->version_class_flow.get() >> kIpv6ClassShift));
	return Ecn::NotCapable;
}

} // namespace

bool can_mark(std::span<const std::byte> frame)
{
	return capability(frame) == Ecn::Marked;
}

bool is_marked(std::span<const std::byte> frame)
{
	return capability(frame) == Ecn::WasMarked;
}

Ecn mark_ce(std::span<std::byte> frame)
{
	const Ecn can = capability(frame);
	if (can != Ecn::Marked)
		return can;
	const Network network = network_of(frame);
	if (network.ethertype == kEtherIpv4)
		return mark(*at<Ipv4>(frame, network.offset));
	auto *v6 = at<Ipv6>(frame, network.offset);
	v6->version_class_flow = v6->version_class_flow.get() | uint32_t{kCongestionExperienced}
	                                                                << kIpv6ClassShift;
	return can;
}

} // namespace tern::fabric
