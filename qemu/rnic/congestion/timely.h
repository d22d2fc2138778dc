/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/rnic/congestion/controller.h"

namespace tern {

/**
 * TIMELY (Mittal et al., RTT-based Congestion Control for the Datacenter, SIGCOMM 2015, algorithm
 * 1): the rate follows the gradient of the round-trip time, and between two thresholds nothing
 * else. Each acknowledged packet that was timed is a completion of the paper.
 */
class Timely final : public CongestionController {
public:
	Timely(const CongestionParameters &parameters, uint32_t link_mbps);

	void on_rtt(uint64_t rtt) override;
	uint64_t rate(uint64_t now) override;

private:
	double gradient(double rtt);
	void set_rate(double rate);

	const CongestionParameters &p_;
	const uint32_t link_mbps_;

	double rate_;                        /* kb/s */
	std::optional<double> previous_rtt_; /* ns */
	double rtt_difference_ = 0;          /* smoothed, ns */
	unsigned falling_ = 0;               /* completions in a row without a positive gradient */
};

} // namespace tern
