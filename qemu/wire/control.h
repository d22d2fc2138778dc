/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <string>
#include <string_view>

#include "qemu/shm/ring.h"
#include "qemu/wire/capture.h"
#include "qemu/wire/fault_log.h"
#include "qemu/wire/switch.h"

namespace tern::wire {

/** Port statistics, which only the owner of the sockets has. */
class PortReport {
public:
	virtual ~PortReport() = default;
	/** In one line. */
	virtual std::string describe_ports() const = 0;
	virtual uint64_t frames_dropped() const = 0;
	/** Returns the sums over all hosts, including those that have left. */
	virtual shm::DirectCounts direct() const = 0;
};

/** The commands that control the wire: one line each, with one line of reply. */
class Control {
public:
	Control(Switch &ethernet, Capture &capture, FaultLog &log, const PortReport &ports)
	        : switch_(ethernet), capture_(capture), log_(log), ports_(ports)
	{
	}

	/** Executes one command and returns its reply without a line end: "ok ..." or "error
	 * ...". */
	std::string execute(std::string_view line);

private:
	std::string start_capture(std::string_view argument);
	std::string parse_options(std::string_view &argument, Capture::Options &options) const;
	std::string set_fault(FaultSet::Kind kind, const std::string &argument);
	std::string seed(const std::string &argument);
	std::string clear();
	std::string stop_capture();
	std::string faults() const;
	std::string stats() const;

	Switch &switch_;
	Capture &capture_;
	FaultLog &log_;
	const PortReport &ports_;
};

} // namespace tern::wire
