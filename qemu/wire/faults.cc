// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/faults.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/packet.h"

namespace tern::wire {

namespace {

/* ECT(0) or ECT(1) */
bool is_capable(uint8_t traffic_class)
{
	const uint8_t ecn = traffic_class & kEcnMask;
	return ecn && ecn != kEcnCe;
}

bool mark_ipv4(std::span<std::byte> bytes)
{
	headers::Ipv4 ip;
	if (bytes.size() < sizeof(ip))
		return false;
	std::memcpy(&ip, bytes.data(), sizeof(ip));
	if (ip.version_ihl != headers::kIpv4NoOptions || !is_capable(ip.tos))
		return false;
	ip.tos |= kEcnCe;
	ip.checksum = 0;
	ip.checksum = static_cast<uint16_t>(~headers::ipv4_sum(ip));
	std::memcpy(bytes.data(), &ip, sizeof(ip));
	return true;
}

bool mark_ipv6(std::span<std::byte> bytes)
{
	headers::Ipv6 ip;
	if (bytes.size() < sizeof(ip))
		return false;
	std::memcpy(&ip, bytes.data(), sizeof(ip));
	const uint32_t word = ip.version_class_flow.get();
	if (!is_capable(static_cast<uint8_t>(word >> headers::kIpv6ClassShift)))
		return false;
	ip.version_class_flow = word | uint32_t{kEcnCe} << headers::kIpv6ClassShift;
	std::memcpy(bytes.data(), &ip, sizeof(ip));
	return true;
}

} // namespace

constexpr size_t kEthernetHeader = 14;
constexpr unsigned kMaxOvertaken = 4;
constexpr unsigned kMaxFlips = 3;

void Faults::set_percent(Kind kind, double percent)
{
	const double share = percent / 100;
	thresholds_[kind] = share >= 1 ? std::numeric_limits<uint64_t>::max()
	                               : static_cast<uint64_t>(std::ldexp(share, 64));
	any_ = false;
	for (const uint64_t threshold : thresholds_)
		any_ |= threshold != 0;
}

/* Always draws a number, so that one fault's rate does not affect the others. */
bool Faults::happens(Kind kind)
{
	const uint64_t drawn = random_();
	return thresholds_[kind] && drawn <= thresholds_[kind];
}

Faults::Decision Faults::decide()
{
	Decision decision;
	decision.lost = happens(kLoss);
	decision.duplicated = happens(kDuplicate);
	decision.corrupted = happens(kCorrupt);
	const auto overtaken = static_cast<unsigned>(1 + random_() % kMaxOvertaken);
	decision.overtaken = happens(kReorder) ? overtaken : 0;
	decision.marked = happens(kMark);
	return decision;
}

void Faults::corrupt(std::span<std::byte> frame)
{
	if (frame.size() <= kEthernetHeader)
		return;
	const size_t bits = 8 * (frame.size() - kEthernetHeader);
	/* An even number of flips could cancel out; distinct positions prevent that. */
	const size_t first = random_() % bits;
	const size_t flips = 1 + random_() % kMaxFlips;
	for (size_t i = 0; i < flips; i++) {
		const size_t bit = (first + i * (bits / kMaxFlips)) % bits;
		frame[kEthernetHeader + bit / 8] ^= std::byte{1} << (bit % 8);
	}
}

bool Faults::mark(std::span<std::byte> frame)
{
	headers::Ethernet link;
	headers::Vlan tag;
	headers::Reader in(frame);
	if (!in.take(link))
		return false;
	uint16_t type = link.ethertype.get();
	if (type == headers::kEtherVlan) {
		if (!in.take(tag))
			return false;
		type = tag.ethertype.get();
	}
	const auto ip = frame.last(in.rest().size());
	switch (type) {
	case headers::kEtherIpv4:
		return mark_ipv4(ip);
	case headers::kEtherIpv6:
		return mark_ipv6(ip);
	default:
		return false;
	}
}

} // namespace tern::wire
