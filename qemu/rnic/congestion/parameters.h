/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

namespace tern {

/** What sets the rate of a connection's flow. */
enum class CongestionAlgorithm : uint32_t {
	None,   /* the line rate; data is not marked as capable of ECN, and CNPs are ignored */
	Dcqcn,  /* by CNPs: Zhu et al., Congestion Control for Large-Scale RDMA Deployments, 2015 */
	Timely, /* by round-trip times of RC: Mittal et al., RTT-based Congestion Control, 2015 */
};

/**
 * Congestion control of a card. Names, units and values after power-on are those of mlx5's
 * reaction point (rp_) and notification point (np_). Rates are in Mb/s, times in us.
 */
struct CongestionParameters {
	/* CongestionAlgorithm */
	uint32_t rp_algorithm = static_cast<uint32_t>(CongestionAlgorithm::Dcqcn);
	/* Each CNP makes the current rate the target. 0: only the first one after an increase by
	 * the byte counter or, with _ati, by the timer. */
	uint32_t rp_clamp_tgt_rate = 0;
	uint32_t rp_clamp_tgt_rate_ati = 1;
	uint32_t rp_time_reset = 300;   /* increase the rate this often */
	uint32_t rp_byte_reset = 32767; /* ... and after as many bytes; 0: by time only */
	uint32_t rp_threshold = 1;      /* fast recovery lasts for as many increases */
	uint32_t rp_ai_rate = 5;        /* additive increase of the target */
	uint32_t rp_max_rate = 0;       /* 0: the link's */
	uint32_t rp_hai_rate = 50;      /* hyper increase of the target */
	uint32_t rp_min_dec_fac = 50;   /* a CNP leaves at least as many per cent of the rate */
	uint32_t rp_min_rate = 1;
	uint32_t rp_rate_to_set_on_first_cnp = 0; /* 0: rp_max_rate, then reduced */
	/* Weight of the old alpha, in 1024ths: 1024 (1 - g) with the paper's g. */
	uint32_t rp_dce_tcp_g = 1019;
	uint32_t rp_dce_tcp_rtt = 1;                /* alpha decays this often without a CNP */
	uint32_t rp_rate_reduce_monitor_period = 4; /* least time between two reductions */
	uint32_t rp_initial_alpha_value = 1023;     /* in 1024ths */
	uint32_t rp_gd = 11;           /* a CNP takes alpha / 2^(gd - 10) of the rate */
	uint32_t rp_timer_slack = 100; /* a frame that is less late does not lower the mean rate */

	/* Timely, besides rp_ai_rate, rp_max_rate, rp_min_rate; the paper's values. They suit links
	 * of 10 to 40 Gb/s: see docs/fabric.md. */
	uint32_t rp_timely_t_low = 50;       /* below: additive increase */
	uint32_t rp_timely_t_high = 500;     /* above: decrease */
	uint32_t rp_timely_min_rtt = 20;     /* the unit of the gradient */
	uint32_t rp_timely_beta = 819;       /* of the decrease, in 1024ths */
	uint32_t rp_timely_ewma_alpha = 896; /* weight of a new difference, in 1024ths */

	uint32_t np_enable = 1;                /* send CNPs */
	uint32_t np_min_time_between_cnps = 4; /* of a QP */
	uint32_t np_cnp_dscp = 48;
	uint32_t np_cnp_prio_mode = 0; /* the tag of a CNP has 0: np_cnp_prio, 1: the QP's SL */
	uint32_t np_cnp_prio = 6;

	/* Priority-based flow control: the priorities that a pause frame stops, a bit for each. */
	uint32_t pfc_enable = 0;
	uint32_t pfc_trust_dscp = 0; /* a frame's priority. 0: VLAN tag, 1: DSCP / 8 */

	CongestionAlgorithm algorithm() const
	{
		return static_cast<CongestionAlgorithm>(rp_algorithm);
	}
};

/** The least and the greatest value that a parameter may have. */
struct CongestionRange {
	uint32_t least;
	uint32_t most;
};

CongestionRange range_of(uint32_t CongestionParameters::*parameter);

/** Whether each is in its range. */
bool are_valid(const CongestionParameters &parameters);

/** The parameters of the SIGCOMM 2015 paper, section 5.3. */
constexpr CongestionParameters sigcomm2015()
{
	CongestionParameters p;
	p.rp_clamp_tgt_rate = 1;
	p.rp_time_reset = 55;
	p.rp_byte_reset = 10'000'000;
	p.rp_threshold = 5;
	p.rp_ai_rate = 40;
	p.rp_hai_rate = 200;
	p.rp_dce_tcp_g = 1020;
	p.rp_dce_tcp_rtt = 55;
	p.rp_timer_slack = 0;
	p.np_min_time_between_cnps = 50;
	return p;
}

} // namespace tern
