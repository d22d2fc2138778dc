// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/congestion/dcqcn.h"

#include <algorithm>
#include <cmath>

namespace tern {

namespace {

constexpr double kKbps = 1000; /* in 1 Mb/s */

} // namespace

Dcqcn::Dcqcn(const CongestionParameters &parameters, uint32_t link_mbps)
        : p_(parameters), link_mbps_(link_mbps), current_(max_rate()), target_(current_),
          alpha_(p_.rp_initial_alpha_value / 1024.0)
{
}

double Dcqcn::max_rate() const
{
	return static_cast<double>(tern::max_rate(p_, link_mbps_));
}

void Dcqcn::on_cnp(uint64_t now)
{
	advance(now);
	decay_alpha(now);
	if (notified_ && now - reduced_at_ < uint64_t{p_.rp_rate_reduce_monitor_period} * 1000)
		return;
	/* The highest rate may have been lowered since. A reduction starts from there; from the
	 * former rate it could end above the highest one, and so change nothing. */
	current_ = std::min(current_, max_rate());
	target_ = std::min(target_, max_rate());
	if (!notified_ && p_.rp_rate_to_set_on_first_cnp)
		target_ = current_ = std::min(p_.rp_rate_to_set_on_first_cnp * kKbps, max_rate());
	reduce();
	alpha_ = old_weight() * alpha_ + (1 - old_weight());
	notified_ = true;
	reduced_at_ = alpha_at_ = now;
	increase_at_ = now + time_reset();
	bytes_ = timer_increases_ = counter_increases_ = 0;
}

void Dcqcn::reduce()
{
	if (!notified_ || p_.rp_clamp_tgt_rate || counter_increases_ ||
	    (p_.rp_clamp_tgt_rate_ati && timer_increases_))
		target_ = current_;
	const double left = std::max(1 - std::ldexp(alpha_, 10 - static_cast<int>(p_.rp_gd)),
	                             p_.rp_min_dec_fac / 100.0);
	current_ = std::max(current_ * left, std::min(p_.rp_min_rate * kKbps, max_rate()));
}

void Dcqcn::on_sent(uint64_t now, uint64_t bytes)
{
	advance(now);
	if (!limited() || !p_.rp_byte_reset)
		return;
	bytes_ += bytes;
	while (limited() && bytes_ >= p_.rp_byte_reset) {
		bytes_ -= p_.rp_byte_reset;
		counter_increases_++;
		increase();
	}
}

void Dcqcn::advance(uint64_t now)
{
	while (limited() && increase_at_ <= now) {
		timer_increases_++;
		increase();
		increase_at_ += time_reset();
	}
}

/* Makes up for the periods in which alpha has decayed. Only a CNP needs alpha, so alpha is not
 * updated before. */
void Dcqcn::decay_alpha(uint64_t now)
{
	if (!notified_)
		return;
	const uint64_t periods = (now - alpha_at_) / alpha_period();
	alpha_ *= std::pow(old_weight(), static_cast<double>(periods));
	alpha_at_ += periods * alpha_period();
}

/* Increases the rate: fast recovery until the timer or the byte counter has passed the threshold,
 * then additive increase of the target, and hyper increase once both have passed it. */
void Dcqcn::increase()
{
	const uint32_t most = std::max(timer_increases_, counter_increases_);
	const uint32_t least = std::min(timer_increases_, counter_increases_);
	if (least > p_.rp_threshold)
		target_ += kKbps * p_.rp_hai_rate * (least - p_.rp_threshold);
	else if (most > p_.rp_threshold)
		target_ += kKbps * p_.rp_ai_rate;
	target_ = std::min(target_, max_rate());
	current_ = (target_ + current_) / 2;
	/* The rate converges to the highest rate: it is there if less than 1 kb/s is missing. */
	if (max_rate() - current_ < 1)
		current_ = target_;
}

uint64_t Dcqcn::rate(uint64_t now)
{
	advance(now);
	return static_cast<uint64_t>(std::min(current_, max_rate()));
}

uint64_t Dcqcn::next_change() const
{
	return limited() ? increase_at_ : UINT64_MAX;
}

} // namespace tern
