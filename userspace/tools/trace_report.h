// SPDX-License-Identifier: GPL-2.0-or-later
/* What terntrace prints of events. */
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bpf/shared.h"

namespace tern::tools {

/**
 * If @event is the driver's, replaces its PCI address by the name of the RDMA device that @names
 * has for it, which events of the provider have. TraceFilter and to_chrome() need that.
 */
void name_device(tern_trace_event &event, const std::map<std::string, std::string> &names);

/**
 * Selects the events of the process or QP that is traced. The BPF programs have already filtered
 * the events of the provider. The driver's tracepoints report all processes and QPs, so their
 * events are selected by process, by QP number and by the CQs that had completions of the QP.
 * Of other events those of the link are selected, those of SRQs and WQs only without a filter.
 */
class TraceFilter {
public:
	/** Zero for either means any. */
	TraceFilter(uint32_t pid, uint32_t qpn) : pid_(pid), qpn_(qpn) {}

	/** Events are to come in the order of time. */
	bool wants(const tern_trace_event &event);

private:
	/* A device and a number there, or a process that uses it. */
	using Key = std::pair<std::string, uint32_t>;

	bool wants_all() const { return !pid_ && !qpn_; }
	bool is_of_process(const Key &process) const;
	bool is_of_qp(const Key &qp) const;

	const uint32_t pid_;
	const uint32_t qpn_;
	std::set<Key> processes_; /* whose provider told of something */
	std::set<Key> qps_;       /* and of which QPs and CQs */
	std::set<Key> cqs_;
};

/**
 * Returns a line without its end. @start is the time in ns from which it counts, also backwards:
 * @event may be older.
 */
std::string to_line(const tern_trace_event &event, uint64_t start);

/**
 * Returns all events as JSON that Perfetto and chrome://tracing show. Each QP of a program has a
 * thread, which shows a slice from each post to its completion. Each device has a thread, which
 * shows its events and a slice for each command. All other entries are instants. @lost is the
 * number of events that are missing. The order of @events does not matter.
 */
std::string to_chrome(std::vector<tern_trace_event> events, uint64_t lost);

} // namespace tern::tools
