// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/congestion/timely.h"

#include <algorithm>

namespace tern {

namespace {

constexpr double kKbps = 1000; /* in 1 Mb/s */
constexpr double kUs = 1000;   /* ns */
/* Hyper increase starts after this number of completions in a row without a positive gradient. Its
 * steps are this number of times the additive step. */
constexpr unsigned kHyperIncrease = 5;
/* Between the thresholds the gradient decides which share of a step is a decrease. The share is 1
 * from this gradient on, and 0 up to its negative. */
constexpr double kFullGradient = 0.25;
/* An error of 1, which is a round-trip time of twice T_low, costs this share of beta. The 2016
 * paper has a 100th (0.008 for 0.8). A larger share keeps the queue shorter, but takes more of the
 * rate when flows meet. */
constexpr double kErrorShare = 1.0 / 32;
/* The largest share of the rate that one completion or loss takes. The papers have no bound, but
 * the first packets of many flows at the line rate would leave them nothing. */
constexpr double kMaxDecrease = 0.5;
/* The largest share of the highest rate at which a flow goes on after a timeout. */
constexpr double kRestartShare = 1.0 / 16;

} // namespace

Timely::Timely(const CongestionParameters &parameters, uint32_t link_mbps)
        : p_(parameters), link_mbps_(link_mbps),
          rate_(static_cast<double>(max_rate(parameters, link_mbps)))
{
}

void Timely::on_rtt(uint64_t measured)
{
	const auto rtt = static_cast<double>(measured);
	const double slope = gradient(rtt);
	if (rtt < low()) {
		increase(slope);
		return;
	}
	falling_ = 0;
	/* The share of a decrease in this step; the rest is an increase. */
	const double weight =
	        rtt > high() ? 1 : std::clamp(0.5 + slope / (2 * kFullGradient), 0.0, 1.0);
	const double kept = 1 - std::min(weight * decrease(rtt), kMaxDecrease);
	set_rate(rate_ * kept + (1 - weight) * step());
}

/* A lost packet has no round-trip time, and those that were timed before it tell nothing of the
 * queue after it. */
void Timely::on_loss()
{
	falling_ = 0;
	rtt_difference_ = 0;
	previous_rtt_.reset();
	set_rate(rate_ * (1 - kMaxDecrease));
}

/* Flows that lose their first packets together time out together. At half of the line rate they
 * would lose them again. */
void Timely::on_timeout()
{
	on_loss();
	set_rate(std::min(rate_, static_cast<double>(max_rate(p_, link_mbps_)) * kRestartShare));
}

/* Returns the gradient of the round-trip time, in units of its minimum. */
double Timely::gradient(double rtt)
{
	const double weight = p_.rp_timely_ewma_alpha / 1024.0;
	const double difference = rtt - previous_rtt_.value_or(rtt);
	previous_rtt_ = rtt;
	rtt_difference_ = (1 - weight) * rtt_difference_ + weight * difference;
	return rtt_difference_ / (p_.rp_timely_min_rtt * kUs);
}

/* Hyper increase is for links that are free. Above T_low it would shift the fixed point. */
void Timely::increase(double slope)
{
	falling_ = slope <= 0 ? falling_ + 1 : 0;
	set_rate(rate_ + (falling_ >= kHyperIncrease ? kHyperIncrease : 1) * step());
}

double Timely::decrease(double rtt) const
{
	const double beta = p_.rp_timely_beta / 1024.0;
	const double by_error = beta * kErrorShare * (rtt - low()) / low();
	const double by_excess = beta * (1 - high() / rtt);
	return std::max(by_error, by_excess);
}

void Timely::set_rate(double rate)
{
	const auto most = static_cast<double>(max_rate(p_, link_mbps_));
	rate_ = std::clamp(rate, std::min(p_.rp_min_rate * kKbps, most), most);
}

double Timely::low() const
{
	return p_.rp_timely_t_low * kUs;
}

double Timely::high() const
{
	return p_.rp_timely_t_high * kUs;
}

double Timely::step() const
{
	return p_.rp_ai_rate * kKbps;
}

uint64_t Timely::rate(uint64_t)
{
	return static_cast<uint64_t>(rate_);
}

} // namespace tern
