/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include "qemu/faults/fault.h"
#include "qemu/wire/framing.h"
#include "qemu/wire/output_file.h"

namespace tern::wire {

using faults::FaultEvent;

/** Appends a line of JSON to a file for each fault that is applied to a frame (docs/wire.md). */
class FaultLog {
public:
	/** Appends to that file from now on. Returns an error message, or empty. */
	std::string open(const std::string &path);

	/** Adds a line, unless the file is full: what guests send must not fill the disk. @time is
	 * of CLOCK_REALTIME. */
	void write(const FaultEvent &event, Frame frame, const timespec &time);

private:
	OutputFile file_;
	uint64_t written_ = 0; /* bytes, with those found */
};

} // namespace tern::wire
