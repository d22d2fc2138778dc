// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/pause.h"

#include <cstring>

#include "qemu/rnic/formats/headers.h"

namespace tern::fabric {

namespace {

constexpr uint16_t kEtherMacControl = 0x8808;
constexpr uint16_t kOpcodePfc = 0x0101;
constexpr Mac kPauseAddress{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

/** IEEE 802.1Q, 36.2 */
struct PauseHeaders {
	headers::Ethernet ethernet;
	Be<uint16_t> opcode;
	Be<uint16_t> enable; /* a bit for each priority */
	std::array<Be<uint16_t>, kPriorities> quanta;
};
static_assert(sizeof(PauseHeaders) == 34);

} // namespace

PauseFrame pause_frame(uint8_t priority, uint16_t quanta)
{
	PauseHeaders pause{};
	pause.ethernet.dmac = kPauseAddress;
	pause.ethernet.ethertype = kEtherMacControl;
	pause.opcode = kOpcodePfc;
	pause.enable = static_cast<uint16_t>(1u << priority);
	pause.quanta[priority] = quanta;
	PauseFrame frame{};
	std::memcpy(frame.data(), &pause, sizeof(pause));
	return frame;
}

std::optional<Pause> parse_pause(std::span<const std::byte> frame)
{
	PauseHeaders headers;
	if (frame.size() < sizeof(headers))
		return std::nullopt;
	std::memcpy(&headers, frame.data(), sizeof(headers));
	if (headers.ethernet.ethertype.get() != kEtherMacControl ||
	    headers.opcode.get() != kOpcodePfc)
		return std::nullopt;
	Pause pause{static_cast<uint8_t>(headers.enable.get()), {}};
	for (unsigned i = 0; i < kPriorities; i++)
		pause.quanta[i] = headers.quanta[i].get();
	return pause;
}

} // namespace tern::fabric
