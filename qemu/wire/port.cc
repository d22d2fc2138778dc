// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/port.h"

#include <algorithm>

namespace tern::wire {

using namespace std::chrono_literals;

namespace {

/* Senders wait this long for a host that takes too little. */
constexpr auto kStallTimeout = 1s;
/* The maximum number of times that a port resumes before the switch looks for new events. */
constexpr unsigned kMaxResumes = 4;

bool can_resume(const Port &port)
{
	return port.waiting_for() && !port.waiting_for()->congested();
}

void flush(const Ports &ports, SteadyTime now)
{
	for (const auto &port : ports)
		port->flush();
	for (const auto &port : ports) {
		if (Waitable *slow = port->waiting_for())
			slow->give_up_if_stalled(now, kStallTimeout);
	}
}

/* Resumes each port that can resume when this is called. The first one may fill the queue for which
 * the others wait; without a turn of their own they would send nothing as long as it has frames.
 * Returns whether a port resumed. */
bool resume(const Ports &ports)
{
	std::vector<Port *> ready;
	for (const auto &port : ports) {
		if (can_resume(*port))
			ready.push_back(port.get());
	}
	for (Port *port : ready)
		port->resume();
	return !ready.empty();
}

} // namespace

bool Port::takes_copy()
{
	if (queued() < high_water_)
		return true;
	stats_.dropped++;
	return false;
}

void Port::give_up_if_stalled(SteadyTime now, SteadyTime::duration patience)
{
	if (!congested())
		return;
	if (!awaited_since_ || consumed() - consumed_then_ >= high_water_ / 4) {
		awaited_since_ = now;
		consumed_then_ = consumed();
	}
	given_up_ = now - *awaited_since_ >= patience;
}

/* Ends with a flush: that asks hosts to tell when they have made room. */
void flush_and_resume(const Ports &ports, SteadyTime now)
{
	flush(ports, now);
	for (unsigned i = 0; i < kMaxResumes && resume(ports); i++)
		flush(ports, now);
}

bool can_resume(const Ports &ports)
{
	return std::ranges::any_of(ports, [](const auto &port) { return can_resume(*port); });
}

bool is_awaited(const Port &port, const Ports &ports)
{
	return std::ranges::any_of(ports,
	                           [&](const auto &each) { return each->waiting_for() == &port; });
}

} // namespace tern::wire
