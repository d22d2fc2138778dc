// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/recorder.h"

#include <ctime>

namespace tern::wire {

static timespec wall_clock()
{
	timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now;
}

void Recorder::log_faults(Frame frame)
{
	if (switch_.fault_events().empty())
		return;
	const timespec now = wall_clock();
	for (const FaultEvent &event : switch_.fault_events())
		log_.write(event, frame, now);
}

void Recorder::note(Switch::PortId from, Frame frame)
{
	log_faults(frame);
	if (!capture_.running())
		return;
	const std::vector<uint64_t> &hosts = capture_.options().hosts;
	if (hosts.empty() || switch_.concerns(from, frame, hosts))
		capture_.frame({frame, wall_clock(), from, switch_.fault_events()});
}

} // namespace tern::wire
