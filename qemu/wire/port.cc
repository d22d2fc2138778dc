// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/port.h"

namespace tern::wire {

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

} // namespace tern::wire
