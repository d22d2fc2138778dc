// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/formats/pause.h"

#include <cstring>

#include "qemu/rnic/formats/headers.h"

namespace tern {

namespace {

using headers::Reader;

constexpr uint16_t kEtherMacControl = 0x8808;
constexpr uint16_t kPriorityPause = 0x0101;
constexpr Mac kMacControl{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
constexpr unsigned kClassShift = 5; /* of the traffic class; the DSCP is its upper six bits */

struct PauseHeader {
	Be<uint16_t> opcode;
	Be<uint16_t> enabled; /* a bit for each priority */
	std::array<Be<uint16_t>, kPriorities> quanta;
};
static_assert(sizeof(PauseHeader) == 20 && alignof(PauseHeader) == 1);

unsigned class_of(Reader in, uint16_t ethertype)
{
	headers::Ipv4 ipv4;
	headers::Ipv6 ipv6;
	if (ethertype == headers::kEtherIpv4 && in.take(ipv4))
		return ipv4.tos >> kClassShift;
	if (ethertype == headers::kEtherIpv6 && in.take(ipv6))
		return ipv6.version_class_flow.get() >> (headers::kIpv6ClassShift + kClassShift) &
		       (kPriorities - 1);
	return 0;
}

} // namespace

PauseFrame pause_frame(uint8_t priority, uint16_t quanta)
{
	headers::Ethernet link{};
	link.dmac = kMacControl;
	link.ethertype = kEtherMacControl;
	PauseHeader pause{};
	pause.opcode = kPriorityPause;
	pause.enabled = static_cast<uint16_t>(1u << priority);
	pause.quanta[priority] = quanta;
	PauseFrame frame{};
	std::memcpy(frame.data(), &link, sizeof(link));
	std::memcpy(frame.data() + sizeof(link), &pause, sizeof(pause));
	return frame;
}

std::optional<PauseTimes> parse_pause(std::span<const std::byte> frame)
{
	Reader in(frame);
	const auto *link = in.take<headers::Ethernet>();
	if (!link || link->ethertype.get() != kEtherMacControl || link->dmac != kMacControl)
		return std::nullopt;
	const auto *pause = in.take<PauseHeader>();
	if (!pause || pause->opcode.get() != kPriorityPause)
		return std::nullopt;
	PauseTimes times;
	for (unsigned i = 0; i < kPriorities; i++)
		if (pause->enabled.get() >> i & 1)
			times[i] = pause->quanta[i].get();
	return times;
}

unsigned priority_of(std::span<const std::byte> frame, bool by_dscp)
{
	Reader in(frame);
	headers::Ethernet link;
	headers::Vlan tag;
	if (!in.take(link))
		return 0;
	uint16_t ethertype = link.ethertype.get();
	if (ethertype == headers::kEtherVlan && in.take(tag)) {
		if (!by_dscp)
			return tag.tci.get() >> headers::kVlanPcpShift;
		ethertype = tag.ethertype.get();
	}
	return by_dscp ? class_of(in, ethertype) : 0;
}

} // namespace tern
