/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/rnic/congestion/controller.h"

namespace tern {

/**
 * TIMELY (Mittal et al., RTT-based Congestion Control for the Datacenter, SIGCOMM 2015) with the
 * patch of Zhu et al. (ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY, CoNEXT 2016,
 * algorithm 2). The rate follows the gradient of the round-trip time, and between two thresholds
 * its distance from the lower one, too: the gradient alone has no unique fixed point, so rates
 * would stay as unequal as chance has made them.
 *
 * Each call of on_rtt() is a completion of the papers. The caller times one packet at a time, so
 * each completion shows the effect of the rate that the one before has set.
 */
class Timely final : public CongestionController {
public:
	Timely(const CongestionParameters &parameters, uint32_t link_mbps);

	void on_rtt(uint64_t rtt) override;
	void on_loss() override;
	void on_timeout() override;
	uint64_t rate(uint64_t now) override;

private:
	double gradient(double rtt);
	/** Increases the rate: the queue is shorter than it may be. */
	void increase(double slope);
	/** The share of the rate that a round-trip time of @rtt, not less than T_low, costs. */
	double decrease(double rtt) const;
	void set_rate(double rate);
	double low() const;
	double high() const;
	double step() const;

	const CongestionParameters &p_;
	const uint32_t link_mbps_;

	double rate_;                        /* kb/s */
	std::optional<double> previous_rtt_; /* ns */
	double rtt_difference_ = 0;          /* smoothed, ns */
	/* Completions below T_low in a row without a positive gradient. */
	unsigned falling_ = 0;
};

} // namespace tern
