// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/faults/fault.h"

namespace tern::faults {

namespace {

constexpr uint64_t kNsPerUs = 1000;

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
	       cause_of(event) +
	       (event.link.empty() ? ", to port " + std::to_string(event.to)
	                           : ", on " + std::string(event.link));
}

} // namespace tern::faults
