// SPDX-License-Identifier: GPL-2.0-or-later
/* What terntrace prints of events. */
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "bpf/shared.h"

namespace tern::tools {

/**
 * Selects the events of the process or QP that is traced. The BPF programs have already filtered
 * the events of the provider. The driver's tracepoints report all processes and QPs, so their
 * events are selected by process, by QP number and by the CQs that had completions of the QP.
 */
class TraceFilter {
public:
	/** Zero for either means any. */
	TraceFilter(uint32_t pid, uint32_t qpn) : pid_(pid), qpn_(qpn) {}

	/** Events are to come in the order of time. */
	bool wants(const tern_trace_event &event);

private:
	bool is_of_process(uint32_t pid) const;
	bool is_of_qp(uint32_t qpn) const;

	const uint32_t pid_;
	const uint32_t qpn_;
	std::set<uint32_t> processes_; /* whose provider told of something */
	std::set<uint32_t> qps_;       /* and of which QPs and CQs */
	std::set<uint32_t> cqs_;
};

/** A line without its end; @start is the time in ns from which it counts. */
std::string to_line(const tern_trace_event &event, uint64_t start);

/**
 * All events as JSON that Perfetto and chrome://tracing show: a thread for each QP of a program, on
 * it a slice from each post to its completion; commands as slices, all else as instants. @lost
 * events are missing. The order of @events does not matter.
 */
std::string to_chrome(std::vector<tern_trace_event> events, uint64_t lost);

} // namespace tern::tools
