/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "qemu/faults/fault.h"
#include "qemu/wire/framing.h"

namespace tern::wire {

using faults::FaultEvent;

/** The maximum size of a captured frame, in bytes; no frame of the wire is larger. */
inline constexpr size_t kSnapLength = 262144;

/** A frame before faults, and what they did to it. */
struct Captured {
	Frame frame;
	timespec time;         /* of CLOCK_REALTIME */
	unsigned port;         /* from which it came; with a topology: the end of a link */
	std::string_view link; /* the name of that end, if there is a topology */
	const std::vector<FaultEvent> &events;
};

/** A capture file that is being written. */
class CaptureFile {
public:
	virtual ~CaptureFile() = default;

	/** Creates the file. Returns an error message, or empty. */
	virtual std::string open(const std::string &path) = 0;
	/** Returns whether the format has such frames. finish() tells of failed writes. */
	virtual bool write(const Captured &captured) = 0;
	/** Returns whether the file is complete. */
	virtual bool finish() = 0;
};

} // namespace tern::wire
