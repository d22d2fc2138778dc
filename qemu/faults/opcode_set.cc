// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/faults/opcode_set.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "qemu/faults/numbers.h"
#include "qemu/rnic/formats/opcode.h"
#include "qemu/rnic/formats/packet.h"

namespace tern::faults {

namespace {

constexpr uint8_t kRnrNak = kAethRnrNak >> 5;
constexpr uint8_t kNak = kAethNak >> 5;

/* By the opcode without its service. */
constexpr std::string_view kNames[] = {
        "SEND_FIRST",
        "SEND_MIDDLE",
        "SEND_LAST",
        "SEND_LAST_IMM",
        "SEND_ONLY",
        "SEND_ONLY_IMM",
        "WRITE_FIRST",
        "WRITE_MIDDLE",
        "WRITE_LAST",
        "WRITE_LAST_IMM",
        "WRITE_ONLY",
        "WRITE_ONLY_IMM",
        "READ_REQUEST",
        "READ_RESPONSE_FIRST",
        "READ_RESPONSE_MIDDLE",
        "READ_RESPONSE_LAST",
        "READ_RESPONSE_ONLY",
        "ACK",
        "ATOMIC_RESPONSE",
        "COMPARE_SWAP",
        "FETCH_ADD",
        "",
        "SEND_LAST_INV",
        "SEND_ONLY_INV",
        "",
        "",
        "",
        "",
        "FLUSH",
        "ATOMIC_WRITE",
        "",
        "",
};
static_assert(std::size(kNames) == 1 + static_cast<uint8_t>(~kServiceMask));

std::string_view service_name(uint8_t opcode)
{
	switch (service_of(opcode)) {
	case Service::Rc:
		return "RC";
	case Service::Uc:
		return "UC";
	case Service::Ud:
		return "UD";
	case Service::Xrc:
		return "XRC";
	}
	return "";
}

std::string_view class_name(PacketKind kind)
{
	switch (kind) {
	case PacketKind::Send:
		return "SEND";
	case PacketKind::Write:
		return "WRITE";
	case PacketKind::ReadRequest:
		return "READ";
	case PacketKind::ReadResponse:
		return "READ_RESPONSE";
	case PacketKind::Atomic:
		return "ATOMIC";
	default:
		return "";
	}
}

/* Without the service. Empty if it has no name. */
std::string_view short_name(uint8_t opcode, uint8_t ack_kind)
{
	const PacketKind kind = opcode_info(opcode).kind;
	if (kind == PacketKind::Reserved)
		return "";
	if (kind == PacketKind::Acknowledge && ack_kind == kRnrNak)
		return "RNR_NAK";
	if (kind == PacketKind::Acknowledge && ack_kind == kNak)
		return "NAK";
	if (kind == PacketKind::Atomic && opcode_info(opcode).atomic_masks)
		return opcode == static_cast<uint8_t>(Opcode::RcMaskedCompareSwap)
		               ? "MASKED_COMPARE_SWAP"
		               : "MASKED_FETCH_ADD";
	return kNames[static_cast<uint8_t>(rc_opcode(opcode))];
}

bool is_named(std::string_view word, uint8_t opcode, uint8_t ack_kind)
{
	if (opcode == kCnpOpcode)
		return word == "CNP" && !ack_kind;
	const std::string_view name = short_name(opcode, ack_kind);
	if (name.empty())
		return false;
	const std::string_view service = service_name(opcode);
	if (word == service)
		return true;
	if (word.starts_with(service) && word.substr(service.size()).starts_with('_'))
		word.remove_prefix(service.size() + 1);
	return !word.empty() && (word == name || word == class_name(opcode_info(opcode).kind));
}

} // namespace

std::string opcode_name(uint8_t opcode, uint8_t ack_kind)
{
	if (opcode == kCnpOpcode)
		return "CNP";
	const std::string_view name = short_name(opcode, ack_kind);
	if (!name.empty())
		return std::string(service_name(opcode)).append("_").append(name);
	char number[5];
	std::snprintf(number, sizeof(number), "0x%02x", opcode);
	return number;
}

bool is_response(uint8_t opcode)
{
	const PacketKind kind = opcode_info(opcode).kind;
	return kind == PacketKind::ReadResponse || kind == PacketKind::Acknowledge ||
	       kind == PacketKind::AtomicAcknowledge;
}

bool is_data(uint8_t opcode)
{
	const OpcodeInfo &info = opcode_info(opcode);
	const Service service = service_of(opcode);
	return (service == Service::Rc || service == Service::Xrc) &&
	       (info.is_request() || info.kind == PacketKind::ReadResponse);
}

bool OpcodeSet::add(std::string_view word)
{
	if (const auto number = parse_integer<uint8_t>(word)) {
		for (uint8_t kind = 0; kind < kAckKinds; kind++)
			members_.set(index(*number, kind));
		return true;
	}
	std::string upper(word);
	std::ranges::transform(upper, upper.begin(),
	                       [](unsigned char c) { return std::toupper(c); });
	if (upper == "ETHERNET") {
		members_.set(kEthernet);
		return true;
	}
	bool found = false;
	for (size_t i = 0; i < kEthernet; i++) {
		const auto opcode = static_cast<uint8_t>(i % kOpcodes);
		if (is_named(upper, opcode, static_cast<uint8_t>(i / kOpcodes))) {
			members_.set(i);
			found = true;
		}
	}
	return found;
}

bool OpcodeSet::has(const std::optional<RoceFields> &roce) const
{
	return members_[roce ? index(roce->opcode, roce->ack_kind) : kEthernet];
}

bool OpcodeSet::has_data() const
{
	for (size_t i = 0; i < kOpcodes; i++) {
		if (members_[i] && is_data(static_cast<uint8_t>(i)))
			return true;
	}
	return false;
}

bool OpcodeSet::has_roce() const
{
	return members_.count() > (members_[kEthernet] ? 1 : 0);
}

} // namespace tern::faults
