/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/congestion/controller.h"

namespace tern {

/**
 * The reaction point of DCQCN (Zhu et al., SIGCOMM 2015, section 3.1), with the parameters that
 * mlx5 adds. It needs no timer of its own: each call first makes up for the increases that are due.
 */
class Dcqcn final : public CongestionController {
public:
	Dcqcn(const CongestionParameters &parameters, uint32_t link_mbps);

	void on_cnp(uint64_t now) override;
	void on_sent(uint64_t now, uint64_t bytes) override;
	uint64_t rate(uint64_t now) override;
	uint64_t next_change() const override;

private:
	void advance(uint64_t now);
	void decay_alpha(uint64_t now);
	void reduce();
	void increase();
	double max_rate() const;
	/** Below the highest rate, and so to be increased. */
	bool limited() const { return notified_ && current_ < max_rate(); }
	double old_weight() const { return p_.rp_dce_tcp_g / 1024.0; }
	uint64_t time_reset() const { return uint64_t{p_.rp_time_reset} * 1000; }
	uint64_t alpha_period() const { return uint64_t{p_.rp_dce_tcp_rtt} * 1000; }

	const CongestionParameters &p_;
	const uint32_t link_mbps_;

	double current_;                 /* kb/s */
	double target_;                  /* what current_ goes halfway to at each increase */
	double alpha_;                   /* estimate of congestion, 0 to 1 */
	bool notified_ = false;          /* a CNP has arrived */
	uint64_t reduced_at_ = 0;        /* the last reduction */
	uint64_t alpha_at_ = 0;          /* the last change of alpha */
	uint64_t increase_at_ = 0;       /* the timer's next increase */
	uint64_t bytes_ = 0;             /* since the byte counter's last increase */
	uint32_t timer_increases_ = 0;   /* since the last reduction; T of the paper */
	uint32_t counter_increases_ = 0; /* BC of the paper */
};

} // namespace tern
