/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "qemu/wire/capture.h"
#include "qemu/wire/fault_log.h"
#include "qemu/wire/switch.h"

namespace tern::wire {

/** Where frames are captured, and what faults did to them is logged. */
class Recorder {
public:
	/** All references must outlive this. */
	Recorder(const Switch &ethernet, Capture &capture, FaultLog &log)
	        : switch_(ethernet), capture_(capture), log_(log)
	{
	}

	/** A frame came in from port @from. If the switch has forwarded it already, the faults that
	 * it had are noted, too. */
	void record(Switch::PortId from, Frame frame)
	{
		if (capture_.running() || !switch_.fault_events().empty())
			note(from, frame);
	}
	/** Logs the faults of @frame, which was captured before and delivered last. */
	void log_faults(Frame frame);

private:
	void note(Switch::PortId from, Frame frame);

	const Switch &switch_;
	Capture &capture_;
	FaultLog &log_;
};

} // namespace tern::wire
