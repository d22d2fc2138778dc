// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/control.h"

#include <charconv>
#include <optional>
#include <sstream>

namespace tern::wire {

template <typename Number>
static std::optional<Number> parse(const std::string &text)
{
	Number number{};
	const char *end = text.data() + text.size();
	const auto [stopped, error] = std::from_chars(text.data(), end, number);
	if (error != std::errc() || stopped != end)
		return std::nullopt;
	return number;
}

static std::string reply(const std::string &error)
{
	return error.empty() ? "ok" : "error " + error;
}

std::string Control::execute(std::string_view line)
{
	while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
		line.remove_suffix(1);
	const size_t space = line.find(' ');
	const std::string_view command = line.substr(0, space);
	const std::string argument(space == line.npos ? "" : line.substr(space + 1));

	if (command == "capture")
		return argument.empty() ? "error capture PATH" : reply(capture_.start(argument));
	if (command == "loss")
		return set_fault(Faults::kLoss, argument);
	if (command == "dup")
		return set_fault(Faults::kDuplicate, argument);
	if (command == "reorder")
		return set_fault(Faults::kReorder, argument);
	if (command == "corrupt")
		return set_fault(Faults::kCorrupt, argument);
	if (command == "ce")
		return set_fault(Faults::kMark, argument);
	if (command == "seed")
		return seed(argument);
	if (!argument.empty())
		return "error unknown command, or it takes no argument";
	if (command == "capture-stop")
		return stop_capture();
	if (command == "stats")
		return stats();
	if (command == "ports")
		return "ok " + ports_.describe_ports();
	return "error unknown command; there are capture, capture-stop, loss, dup, reorder, "
	       "corrupt, ce, seed, stats, ports";
}

std::string Control::set_fault(Faults::Kind kind, const std::string &argument)
{
	const auto percent = parse<double>(argument);
	if (!percent || !(*percent >= 0 && *percent <= 100))
		return "error a percentage from 0 to 100 is needed";
	switch_.faults().set_percent(kind, *percent);
	return "ok";
}

std::string Control::seed(const std::string &argument)
{
	const auto number = parse<uint64_t>(argument);
	if (!number)
		return "error a number is needed";
	switch_.faults().seed(*number);
	return "ok";
}

std::string Control::stop_capture()
{
	const std::string error = capture_.stop();
	if (!error.empty())
		return reply(error);
	return "ok " + std::to_string(capture_.frames()) + " frames";
}

std::string Control::stats() const
{
	const Switch::Stats &stats = switch_.stats();
	const shm::DirectCounts direct = ports_.direct();
	std::ostringstream out;
	out << "ok frames=" << stats.frames << " bytes=" << stats.bytes
	    << " flooded=" << stats.flooded << " filtered=" << stats.filtered
	    << " dropped=" << ports_.frames_dropped() << " lost=" << stats.lost
	    << " duplicated=" << stats.duplicated << " reordered=" << stats.reordered
	    << " corrupted=" << stats.corrupted << " marked=" << stats.marked
	    << " direct=" << direct.sent << " direct_received=" << direct.received
	    << " direct_lost=" << direct.lost << " links_cut=" << direct.links_cut;
	return out.str();
}

} // namespace tern::wire
