// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/congestion/parameters.h"

#include <algorithm>
#include <iterator>

namespace tern {

namespace {

/* A rate limit counts in kb/s with 32 bits. */
constexpr uint32_t kMaxRate = 4'000'000;
constexpr uint32_t kMaxPeriod = 131'071;

using P = CongestionParameters;

struct Limits {
	uint32_t P::*parameter;
	uint32_t least;
	uint32_t most;
};

constexpr Limits kRanges[] = {
        {&P::rp_algorithm, 0, static_cast<uint32_t>(CongestionAlgorithm::Timely)},
        {&P::rp_clamp_tgt_rate, 0, 1},
        {&P::rp_clamp_tgt_rate_ati, 0, 1},
        {&P::rp_time_reset, 1, kMaxPeriod},
        {&P::rp_byte_reset, 0, INT32_MAX},
        {&P::rp_threshold, 1, 31},
        {&P::rp_ai_rate, 1, kMaxRate},
        {&P::rp_max_rate, 0, kMaxRate},
        {&P::rp_hai_rate, 1, kMaxRate},
        {&P::rp_min_dec_fac, 1, 100},
        {&P::rp_min_rate, 1, kMaxRate},
        {&P::rp_rate_to_set_on_first_cnp, 0, kMaxRate},
        {&P::rp_dce_tcp_g, 0, 1023},
        {&P::rp_dce_tcp_rtt, 1, kMaxPeriod},
        {&P::rp_rate_reduce_monitor_period, 0, kMaxPeriod},
        {&P::rp_initial_alpha_value, 1, 1023},
        {&P::rp_gd, 10, 15},
        {&P::rp_timer_slack, 0, kMaxPeriod},
        {&P::rp_timely_t_low, 1, kMaxPeriod},
        {&P::rp_timely_t_high, 1, kMaxPeriod},
        {&P::rp_timely_min_rtt, 1, kMaxPeriod},
        {&P::rp_timely_beta, 1, 1024},
        {&P::rp_timely_ewma_alpha, 1, 1024},
        {&P::np_enable, 0, 1},
        {&P::np_min_time_between_cnps, 0, kMaxPeriod},
        {&P::np_cnp_dscp, 0, 63},
        {&P::np_cnp_prio_mode, 0, 1},
        {&P::np_cnp_prio, 0, 7},
        {&P::pfc_enable, 0, 255},
        {&P::pfc_trust_dscp, 0, 1},
};
static_assert(std::size(kRanges) * sizeof(uint32_t) == sizeof(P));

} // namespace

CongestionRange range_of(uint32_t P::*parameter)
{
	const Limits *limits = std::ranges::find(kRanges, parameter, &Limits::parameter);
	return {limits->least, limits->most};
}

bool are_valid(const CongestionParameters &parameters)
{
	return std::ranges::all_of(kRanges, [&](const Limits &limits) {
		const uint32_t value = parameters.*limits.parameter;
		return value >= limits.least && value <= limits.most;
	});
}

} // namespace tern
