// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/placement.h"

namespace tern {

Placement::Placement()
{
	if (sched_getaffinity(0, sizeof(allowed_), &allowed_))
		CPU_ZERO(&allowed_);
	current_ = allowed_;
}

void Placement::join(uint32_t cpu, uint64_t now)
{
	if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed_))
		return;
	last_join_ = now;
	if ((joined_ && CPU_ISSET(cpu, &current_)) || now - last_move_ < kMinMoveInterval)
		return;
	last_move_ = now;
	cpu_set_t there;
	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	set(there);
}

void Placement::set(const cpu_set_t &to)
{
	cpu_set_t is;
	if (sched_getaffinity(0, sizeof(is), &is) || !CPU_EQUAL(&is, &current_)) {
		/* Another program has changed the affinity: leave it alone from now on. */
		CPU_ZERO(&allowed_);
		joined_ = false;
		return;
	}
	joined_ = !CPU_EQUAL(&to, &allowed_);
	current_ = to;
	sched_setaffinity(0, sizeof(to), &to);
}

} // namespace tern
