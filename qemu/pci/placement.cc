// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/pci/placement.h"

namespace tern {

Placement::Placement()
{
	if (sched_getaffinity(0, sizeof(allowed_), &allowed_))
		CPU_ZERO(&allowed_);
	now_ = allowed_;
}

void Placement::join(uint32_t cpu, uint64_t now)
{
	if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed_))
		return;
	renewed_ = now;
	if ((joined_ && CPU_ISSET(cpu, &now_)) || now - moved_ < kPause)
		return;
	moved_ = now;
	cpu_set_t there;
	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	set(there);
}

void Placement::set(const cpu_set_t &to)
{
	cpu_set_t is;
	if (sched_getaffinity(0, sizeof(is), &is) || !CPU_EQUAL(&is, &now_)) {
		/* Whoever did that knows better, and is left alone. */
		CPU_ZERO(&allowed_);
		joined_ = false;
		return;
	}
	joined_ = !CPU_EQUAL(&to, &allowed_);
	now_ = to;
	sched_setaffinity(0, sizeof(to), &to);
}

} // namespace tern
