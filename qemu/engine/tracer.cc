// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/tracer.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/names.h"

/* In the order of Tracer::Event. */
struct tern_trace_event tern_trace_events[TERN_TRACE_EVENTS] = {
        {"tern_reg_read", 0},   {"tern_reg_write", 0},   {"tern_doorbell", 0},
        {"tern_cmd_start", 0},  {"tern_cmd_done", 0},    {"tern_qp_state", 0},
        {"tern_nak_send", 0},   {"tern_nak_receive", 0}, {"tern_retry", 0},
        {"tern_timeout", 0},    {"tern_drop", 0},        {"tern_falsified", 0},
        {"tern_page_fault", 0}, {"tern_lend", 0},        {"tern_recall", 0},
};

namespace tern {

using namespace hw;

enum Tracer::Event : uint8_t {
	RegRead,
	RegWrite,
	Doorbell,
	CmdStart,
	CmdDone,
	QpState,
	NakSend,
	NakReceive,
	Retry,
	Timeout,
	Drop,
	Falsified,
	Fault,
	Lend,
	Recalled,
	Count,
};

namespace {

constexpr size_t kMaxLine = 200;

const char *nak_name(uint8_t syndrome)
{
	if ((syndrome & kAethKindMask) == kAethRnrNak)
		return "RNR";
	if ((syndrome & kAethKindMask) != kAethNak)
		return "reserved";
	switch (static_cast<NakCode>(syndrome & kAethValueMask)) {
	case NakCode::PsnSequenceError:
		return "PSN_SEQUENCE_ERROR";
	case NakCode::InvalidRequest:
		return "INVALID_REQUEST";
	case NakCode::RemoteAccessError:
		return "REMOTE_ACCESS_ERROR";
	case NakCode::RemoteOperationalError:
		return "REMOTE_OPERATIONAL_ERROR";
	}
	return "reserved";
}

} // namespace

void Tracer::print(Event event, const char *format, ...)
{
	static_assert(int{TERN_TRACE_EVENTS} == int{Count});
	std::array<char, kMaxLine> text;
	va_list arguments;
	if (!tern_trace_events[event].enabled)
		return;
	va_start(arguments, format);
	std::vsnprintf(text.data(), text.size(), format, arguments);
	va_end(arguments);
	ops_.trace(opaque_, engine_, tern_trace_events[event].name, text.data());
}

void Tracer::register_read(uint32_t offset, uint32_t value)
{
	print(RegRead, "offset 0x%x value 0x%x", offset, value);
}

void Tracer::register_write(uint32_t offset, uint32_t value)
{
	print(RegWrite, "offset 0x%x value 0x%x", offset, value);
}

void Tracer::doorbell(uint32_t page, uint32_t offset, uint64_t value)
{
	print(Doorbell, "page %u offset 0x%x number 0x%x index 0x%x", page, offset,
	      static_cast<uint32_t>(value & TERN_DB_NUM_MASK),
	      static_cast<uint32_t>(value >> TERN_DB_INDEX_SHIFT));
}

void Tracer::lent(const Loan &loan, std::span<const HostRange> payload, uint32_t segment,
                  Wire::Lend result)
{
	if (!tern_trace_events[Lend].enabled)
		return;
	size_t size = 0;
	for (const HostRange &range : payload)
		size += range.size;
	print(Lend, "qpn 0x%x bytes %zu packets of %u: %s", loan.qpn, size, segment,
	      result == Wire::Lend::Done   ? "done"
	      : result == Wire::Lend::Full ? "no room"
	                                   : "refused");
}

void Tracer::recalled(const Recall &what, uint64_t revoked)
{
	print(Recalled, "%s 0x%x packets revoked %llu",
	      what.is_everything() ? "everything"
	      : what.is_key()      ? "key"
	                           : "qpn",
	      what.number(), static_cast<unsigned long long>(revoked));
}

void Tracer::command_started(uint16_t opcode, uint16_t id)
{
	print(CmdStart, "id %u %s", id, command_name(opcode).data());
}

void Tracer::command_done(uint16_t opcode, uint16_t id, tern_hw_aq_status status, uint16_t field)
{
	const std::string refused = field ? " field " + std::to_string(field) : std::string();
	print(CmdDone, "id %u %s status %s%s", id, command_name(opcode).data(),
	      command_status_name(status).data(), refused.c_str());
}

void Tracer::state_changed(uint32_t qpn, tern_hw_qp_state from, tern_hw_qp_state to)
{
	print(QpState, "qpn 0x%x %s to %s", qpn, qp_state_name(from).data(),
	      qp_state_name(to).data());
}

void Tracer::nak_queued(uint32_t qpn, uint32_t psn, uint8_t syndrome)
{
	print(NakSend, "qpn 0x%x psn 0x%x %s", qpn, psn, nak_name(syndrome));
}

void Tracer::nak_received(uint32_t qpn, uint32_t psn, uint8_t syndrome)
{
	print(NakReceive, "qpn 0x%x psn 0x%x %s", qpn, psn, nak_name(syndrome));
}

void Tracer::retried(uint32_t qpn, uint32_t psn, uint8_t left)
{
	print(Retry, "qpn 0x%x psn 0x%x left %u", qpn, psn, left);
}

void Tracer::timed_out(uint32_t qpn, uint32_t psn)
{
	print(Timeout, "qpn 0x%x psn 0x%x", qpn, psn);
}

void Tracer::dropped(tern_hw_stat reason, uint32_t qpn)
{
	print(Drop, "%s qpn 0x%x", stat_name(reason).data(), qpn);
}

void Tracer::falsified(const char *ring, uint32_t number, size_t offset)
{
	print(Falsified, "%s 0x%x byte %zu", ring, number, offset);
}

void Tracer::page_fault(uint32_t qpn, uint32_t key, uint64_t addr, uint32_t length)
{
	print(Fault, "qpn 0x%x key 0x%x addr 0x%llx length %u", qpn, key,
	      static_cast<unsigned long long>(addr), length);
}

} // namespace tern
