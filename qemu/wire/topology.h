/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qemu/fabric/plan.h"
#include "qemu/fabric/real_time.h"
#include "qemu/faults/link_faults.h"
#include "qemu/wire/edge.h"
#include "qemu/wire/recorder.h"

namespace tern::wire {

/** Cards of a topology: each is a port of the switch. */
constexpr size_t kMaxCards = 64;

/** Reads a TOML file (docs/fabric.md); throws a fabric::TomlError. All of the file is
 * checked; what it says of simulated time has no effect. */
fabric::Plan read_topology(const std::string &path);
/** As read_topology(), of @text; errors name @path. */
fabric::Plan parse_topology(const std::string &text, const std::string &path);
/** Reads the topology of the file @path for the lab. Returns its hosts that have cards, with these
 * and their rates, and the keys that have no effect in real time, as JSON in one line. Throws a
 * fabric::TomlError, also if there is none. */
std::string describe_topology(const std::string &path);
/** As describe_topology(), of @text; errors name @path. */
std::string describe_text(const std::string &text, const std::string &path);

/** The switches and links of a plan in real time, with an edge for each card. */
class Topology {
public:
	/** All references must outlive this. */
	Topology(fabric::Plan plan, Clock &clock, Switch &ethernet, Recorder &recorder);

	size_t cards() const { return edges_.size(); }
	const std::string &name_of(size_t card) const { return plan_.cards[card]; }
	/** Returns the name of the TAP interface that takes the place of @card, or empty. */
	const std::string &tap_of(size_t card) const;
	Edge &edge(size_t card) { return *edges_[card]; }

	/** Runs all events that are due. */
	void advance() { time_.advance(); }
	/** Returns the time until the next event, if there is one. */
	std::optional<std::chrono::nanoseconds> until_next() const;

	/** Executes a command of the control socket, if it is one of a topology's, and returns its
	 * reply without a line end: "ok ..." or "error ...". */
	std::optional<std::string> execute(std::string_view line);
	/** Returns the counters of all links, queues, switches and cards as JSON in one line. */
	std::string report();

private:
	std::string set_link(const std::string &a, const std::string &b, const std::string &state);
	std::optional<fabric::Fabric::End> find_switch(const std::string &name) const;

	const fabric::Plan plan_;
	tern::EventLoop loop_;
	fabric::Fabric fabric_;
	fabric::RealTime time_;
	std::vector<std::unique_ptr<Edge>> edges_;
	std::vector<std::unique_ptr<faults::LinkFaults>> links_;
};

} // namespace tern::wire
