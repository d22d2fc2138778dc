// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/qp_rates.h"

#include <algorithm>

namespace tern {

void QpRates::inject(uint32_t rate)
{
	injected_.reset();
	if (!rate)
		return;
	hw::tern_hw_rate_limit limit{};
	limit.rate = rate;
	injected_ = std::make_unique<Pacer>();
	injected_->set(limit);
}

RateControl &QpRates::control(const CongestionParameters &parameters, uint32_t link_mbps)
{
	if (!control_)
		control_ = std::make_unique<RateControl>(parameters, link_mbps);
	return *control_;
}

uint64_t QpRates::next(QpSide side, uint64_t now) const
{
	const uint64_t limit = limits(side) ? limit_.next() : 0;
	const uint64_t congestion = control_ ? control_->next(now) : 0;
	const uint64_t injected = injected_ ? injected_->next() : 0;
	return std::max({limit, congestion, injected});
}

bool QpRates::exhausted_by(uint64_t now, size_t size) const
{
	return (limit_.limited() && limit_.exhausted_by(now, size)) ||
	       (control_ && control_->exhausted_by(now, size)) ||
	       (injected_ && injected_->exhausted_by(now, size));
}

void QpRates::sent(QpSide side, uint64_t now, size_t size)
{
	if (limits(side))
		limit_.sent(now, size);
	if (control_)
		control_->sent(now, size);
	if (injected_)
		injected_->sent(now, size);
}

} // namespace tern
