// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/control.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "qemu/faults/numbers.h"
#include "qemu/rnic/json.h"

namespace tern::wire {

static std::string reply(const std::string &error)
{
	return error.empty() ? "ok" : "error " + error;
}

static void describe(Json &to, unsigned number, const faults::Rule &rule)
{
	to.object("", [&] {
		to.number("rule", number);
		to.text("text", rule.text());
		to.number("matched", rule.matched());
		to.number("hits", rule.hits());
		to.flag("spent", rule.spent());
	});
}

std::string Control::execute(std::string_view line)
{
	while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
		line.remove_suffix(1);
	const size_t space = line.find(' ');
	const std::string_view command = line.substr(0, space);
	const std::string argument(space == line.npos ? "" : line.substr(space + 1));

	if (command == "capture")
		return start_capture(argument);
	if (command == "loss")
		return set_fault(FaultSet::kLoss, argument);
	if (command == "dup")
		return set_fault(FaultSet::kDuplicate, argument);
	if (command == "reorder")
		return set_fault(FaultSet::kReorder, argument);
	if (command == "corrupt")
		return set_fault(FaultSet::kCorrupt, argument);
	if (command == "ce")
		return set_fault(FaultSet::kMark, argument);
	if (command == "seed")
		return seed(argument);
	if (command == "rules")
		return reply(switch_.faults().add_rules(argument));
	if (command == "fault-log")
		return argument.empty() ? "error fault-log PATH" : reply(log_.open(argument));
	if (!argument.empty())
		return "error unknown command, or it takes no argument";
	if (command == "capture-stop")
		return stop_capture();
	if (command == "clear")
		return clear();
	if (command == "faults")
		return faults();
	if (command == "stats")
		return stats();
	if (command == "ports")
		return "ok " + ports_.describe_ports();
	return "error unknown command; there are capture, capture-stop, loss, dup, reorder, "
	       "corrupt, ce, seed, rules, faults, clear, fault-log, stats, ports";
}

/* Takes the options that come before the path. Returns what is wrong with one, or empty. */
std::string Control::parse_options(std::string_view &argument, Capture::Options &options) const
{
	static constexpr std::string_view kHost = "host=", kLink = "link=";
	for (;;) {
		const std::string_view word = argument.substr(0, argument.find(' '));
		if (word == "mirror" && word.size() < argument.size()) {
			options.mirror = true;
		} else if (word.starts_with(kHost)) {
			options.hosts = faults::parse_addresses(word.substr(kHost.size()));
			if (options.hosts.empty())
				return "host= needs Ethernet addresses, separated by commas";
		} else if (word.starts_with(kLink)) {
			const std::string_view name = word.substr(kLink.size());
			options.links = faults::find_links(name, switch_.faults().links());
			if (options.links.empty())
				return "there is no link \"" + std::string(name) + "\"";
		} else {
			return {};
		}
		argument.remove_prefix(std::min(word.size() + 1, argument.size()));
	}
}

std::string Control::start_capture(std::string_view argument)
{
	Capture::Options options;
	const std::string error = parse_options(argument, options);
	if (!error.empty())
		return reply(error);
	if (argument.empty())
		return "error capture [host=ADDRESS,...] [link=FROM:TO,...] [mirror] PATH";
	return reply(capture_.start(std::string(argument), std::move(options)));
}

std::string Control::clear()
{
	switch_.faults().clear();
	return "ok";
}

std::string Control::faults() const
{
	static constexpr std::pair<std::string_view, FaultSet::Kind> kPercentages[] = {
	        {"loss", FaultSet::kLoss},
	        {"dup", FaultSet::kDuplicate},
	        {"reorder", FaultSet::kReorder},
	        {"corrupt", FaultSet::kCorrupt},
	        {"ce", FaultSet::kMark}};
	const FaultSet &faults = switch_.faults();
	Json json;
	json.object("", [&] {
		for (const auto &[name, kind] : kPercentages)
			json.real(name, faults.percent(kind));
		json.list("rules", [&] {
			for (const auto &[number, rule] : faults.rules())
				describe(json, number, rule);
		});
	});
	return "ok " + json.written();
}

std::string Control::set_fault(FaultSet::Kind kind, const std::string &argument)
{
	const auto percent = faults::parse_decimal<double>(argument);
	if (!percent || !(*percent >= 0 && *percent <= 100))
		return "error a percentage from 0 to 100 is needed";
	switch_.faults().set_percent(kind, *percent);
	return "ok";
}

std::string Control::seed(const std::string &argument)
{
	const auto number = faults::parse_decimal<uint64_t>(argument);
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
	const FaultSet::Counts &faults = switch_.faults().counts;
	const shm::DirectCounts direct = ports_.direct();
	std::ostringstream out;
	out << "ok frames=" << stats.frames << " bytes=" << stats.bytes
	    << " flooded=" << stats.flooded << " filtered=" << stats.filtered
	    << " dropped=" << ports_.frames_dropped() << " lost=" << faults.lost
	    << " duplicated=" << faults.duplicated << " reordered=" << faults.reordered
	    << " corrupted=" << faults.corrupted << " marked=" << faults.marked
	    << " delayed=" << faults.delayed << " direct=" << direct.sent
	    << " direct_received=" << direct.received << " direct_lost=" << direct.lost
	    << " links_cut=" << direct.links_cut;
	return out.str();
}

} // namespace tern::wire
