/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <vector>

#include "qemu/wire/fault.h"
#include "qemu/wire/framing.h"

namespace tern::wire {

/** The maximum size of a captured frame, in bytes; no frame of the wire is larger. */
inline constexpr size_t kSnapLength = 262144;

/** A frame as its host sent it, and what the switch did to it. */
struct Captured {
	Frame frame;
	timespec time; /* of CLOCK_REALTIME */
	unsigned port; /* from which it came */
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
