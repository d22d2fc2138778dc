// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/recorder.h"

#include <algorithm>
#include <ctime>

#include "qemu/shm/address_page.h"

namespace tern::wire {

static timespec wall_clock()
{
	timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now;
}

void Recorder::log(Frame frame, const std::vector<FaultEvent> &events)
{
	if (events.empty())
		return;
	const timespec now = wall_clock();
	for (const FaultEvent &event : events)
		log_.write(event, frame, now);
}

void Recorder::note(Switch::PortId from, Frame frame)
{
	log(frame, switch_.fault_events());
	if (!capture_.running())
		return;
	const std::vector<uint64_t> &hosts = capture_.options().hosts;
	if (hosts.empty() || switch_.concerns(from, frame, hosts))
		capture_.frame({frame, wall_clock(), from, {}, switch_.fault_events()});
}

void Recorder::note_on_link(unsigned link_end, Frame frame, const std::vector<FaultEvent> &events)
{
	log(frame, events);
	if (capture_.running() && is_captured_at(link_end, frame))
		capture_.frame({frame, wall_clock(), link_end,
		                switch_.faults().links()[link_end].name, events});
}

bool Recorder::is_captured_at(unsigned link_end, Frame frame) const
{
	const auto &[hosts, links, mirror] = capture_.options();
	const bool here = links.empty() ? switch_.faults().links()[link_end].at_card
	                                : std::ranges::find(links, link_end) != links.end();
	if (!here || hosts.empty())
		return here;
	const uint64_t to = shm::address_at(frame, 0);
	return to & fabric::kGroupBit || std::ranges::find(hosts, to) != hosts.end() ||
	       std::ranges::find(hosts, shm::address_at(frame, sizeof(Mac))) != hosts.end();
}

} // namespace tern::wire
