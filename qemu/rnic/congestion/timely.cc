// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/congestion/timely.h"

#include <algorithm>

namespace tern {

namespace {

constexpr double kKbps = 1000; /* in 1 Mb/s */
constexpr double kUs = 1000;   /* ns */
/* So many completions in a row without a positive gradient start hyper increase, which is as many
 * times the additive one. */
constexpr unsigned kHyperIncrease = 5;

} // namespace

Timely::Timely(const CongestionParameters &parameters, uint32_t link_mbps)
        : p_(parameters), link_mbps_(link_mbps),
          rate_(static_cast<double>(max_rate(parameters, link_mbps)))
{
}

void Timely::on_rtt(uint64_t measured)
{
	const auto rtt = static_cast<double>(measured);
	const double low = p_.rp_timely_t_low * kUs;
	const double high = p_.rp_timely_t_high * kUs;
	const double beta = p_.rp_timely_beta / 1024.0;
	const double slope = gradient(rtt);
	const double step = kKbps * p_.rp_ai_rate;

	falling_ = slope <= 0 && rtt >= low && rtt <= high ? falling_ + 1 : 0;
	if (rtt < low)
		set_rate(rate_ + step);
	else if (rtt > high)
		set_rate(rate_ * (1 - beta * (1 - high / rtt)));
	else if (slope <= 0)
		set_rate(rate_ + (falling_ >= kHyperIncrease ? kHyperIncrease : 1) * step);
	else
		set_rate(rate_ * (1 - beta * slope));
}

/* Of the round-trip time, in units of its minimum. */
double Timely::gradient(double rtt)
{
	const double weight = p_.rp_timely_ewma_alpha / 1024.0;
	const double difference = rtt - previous_rtt_.value_or(rtt);
	previous_rtt_ = rtt;
	rtt_difference_ = (1 - weight) * rtt_difference_ + weight * difference;
	return rtt_difference_ / (p_.rp_timely_min_rtt * kUs);
}

void Timely::set_rate(double rate)
{
	const auto most = static_cast<double>(max_rate(p_, link_mbps_));
	rate_ = std::clamp(rate, std::min(p_.rp_min_rate * kKbps, most), most);
}

uint64_t Timely::rate(uint64_t)
{
	return static_cast<uint64_t>(rate_);
}

} // namespace tern
