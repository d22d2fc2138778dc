// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/fault_log.h"

#include <cstring>
#include <fcntl.h>

#include "qemu/faults/opcode_set.h"
#include "qemu/faults/passage.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/json.h"

namespace tern::wire {

using faults::Fault;
using faults::Passage;

constexpr uint64_t kMaxSize = 64 << 20;

namespace {

/* In ISO 8601 with nanoseconds: JSON's numbers have too few digits for these in some readers. */
std::string to_text(const timespec &time)
{
	tm parts;
	gmtime_r(&time.tv_sec, &parts);
	char date[32], text[48];
	std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
	std::snprintf(text, sizeof(text), "%s.%09ldZ", date, time.tv_nsec);
	return text;
}

std::string to_line(const FaultEvent &event, Frame frame, const timespec &time)
{
	const Passage passage(frame, 0, event.to);
	Mac from;
	std::memcpy(from.data(), frame.data() + from.size(), from.size());
	Json line;
	line.object("", [&] {
		line.text("time", to_text(time));
		line.bytes("from", from, 1);
		line.bytes("to", destination_of(frame), 1);
		if (event.link.empty())
			line.number("port", event.to);
		else
			line.text("link", event.link);
		line.text("action", fault_name(event.fault));
		line.text("cause", cause_of(event));
		if (event.amount)
			line.number(event.fault == Fault::Delay ? "delay_ns" : "overtaken",
			            event.amount);
		if (passage.roce) {
			line.text("opcode", faults::opcode_name(passage.roce->opcode,
			                                        passage.roce->ack_kind));
			line.number("qp", passage.roce->qpn);
			line.number("psn", passage.roce->psn.value());
		}
	});
	return line.written() + '\n';
}

} // namespace

std::string FaultLog::open(const std::string &path)
{
	const std::string error = open_output(path, O_APPEND, file_);
	if (!error.empty())
		return error;
	std::fseek(file_.get(), 0, SEEK_END);
	written_ = static_cast<uint64_t>(std::ftell(file_.get()));
	return {};
}

void FaultLog::write(const FaultEvent &event, Frame frame, const timespec &time)
{
	if (!file_ || written_ >= kMaxSize)
		return;
	const std::string line = to_line(event, frame, time);
	std::fwrite(line.data(), 1, line.size(), file_.get());
	/* A reader finds each line at once. */
	std::fflush(file_.get());
	written_ += line.size();
}

} // namespace tern::wire
