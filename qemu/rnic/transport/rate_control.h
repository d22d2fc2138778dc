/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "qemu/rnic/congestion/controller.h"
#include "qemu/rnic/transport/pacer.h"

namespace tern {

/** The rate of a connection under congestion control: the algorithm that finds the rate, and a
 * token bucket that enforces it. Times are in ns of the clock port. */
class RateControl {
public:
	/** @parameters, which must outlive this, must select a controller. */
	RateControl(const CongestionParameters &parameters, uint32_t link_mbps);

	void on_cnp(uint64_t now) { controller_->on_cnp(now); }
	void on_rtt(uint64_t rtt) { controller_->on_rtt(rtt); }
	void on_loss() { controller_->on_loss(); }
	void on_timeout() { controller_->on_timeout(); }
	/** A frame of @size bytes was sent. */
	void sent(uint64_t now, size_t size);

	/** Whether the rate is below the highest. */
	bool limited(uint64_t now);
	/** When to see whether the next frame may be sent; not later than @now if it may. */
	uint64_t next(uint64_t now);
	/** Whether the next frame must wait after one of @size bytes. */
	bool exhausted_by(uint64_t now, size_t size);

private:
	const CongestionParameters &parameters_;
	const uint32_t link_mbps_;
	std::unique_ptr<CongestionController> controller_;
	Pacer pacer_;
};

} // namespace tern
