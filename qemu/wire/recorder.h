/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <vector>

#include "qemu/faults/link_faults.h"
#include "qemu/wire/capture.h"
#include "qemu/wire/fault_log.h"
#include "qemu/wire/switch.h"

namespace tern::wire {

/** Where frames are captured, and what faults did to them is logged. */
class Recorder final : public faults::LinkObserver {
public:
	/** All references must outlive this. */
	Recorder(Switch &ethernet, Capture &capture, FaultLog &log)
	        : switch_(ethernet), capture_(capture), log_(log)
	{
	}

	/** The switch has forwarded a frame that came in from port @from. */
	void forwarded(Switch::PortId from, Frame frame)
	{
		if (capture_.running() || !switch_.fault_events().empty())
			note(from, frame);
	}
	/* LinkObserver */
	void arrived(unsigned link_end, Frame frame, const std::vector<FaultEvent> &events) override
	{
		if (capture_.running() || !events.empty())
			note_on_link(link_end, frame, events);
	}

private:
	void note(Switch::PortId from, Frame frame);
	void note_on_link(unsigned link_end, Frame frame, const std::vector<FaultEvent> &events);
	void log(Frame frame, const std::vector<FaultEvent> &events);
	bool is_captured_at(unsigned link_end, Frame frame) const;

	Switch &switch_;
	Capture &capture_;
	FaultLog &log_;
};

} // namespace tern::wire
