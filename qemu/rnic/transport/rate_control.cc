// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/rate_control.h"

namespace tern {

RateControl::RateControl(const CongestionParameters &parameters, uint32_t link_mbps)
        : parameters_(parameters), link_mbps_(link_mbps),
          controller_(make_controller(parameters, link_mbps))
{
}

bool RateControl::limited(uint64_t now)
{
	const uint64_t rate = controller_->rate(now);
	if (rate >= max_rate(parameters_, link_mbps_)) {
		pacer_ = {};
		return false;
	}
	const auto kbps = static_cast<uint32_t>(rate);
	if (pacer_.limited())
		pacer_.change_rate(now, kbps);
	else
		pacer_.set(now, kbps, uint64_t{parameters_.rp_timer_slack} * 1000);
	return true;
}

/* A wait that began at a low rate ends earlier if the rate rises. */
uint64_t RateControl::next(uint64_t now)
{
	return limited(now) ? std::min(pacer_.next(), controller_->next_change()) : 0;
}

void RateControl::sent(uint64_t now, size_t size)
{
	if (limited(now))
		pacer_.sent(now, size);
	controller_->on_sent(now, size);
}

bool RateControl::exhausted_by(uint64_t now, size_t size)
{
	return limited(now) && pacer_.exhausted_by(now, size);
}

} // namespace tern
