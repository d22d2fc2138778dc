/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>

#include "qemu/rnic/congestion/parameters.h"

namespace tern {

/**
 * A congestion control algorithm: finds the rate of one flow from what is known of the network.
 * Times are in ns of the clock port and never decrease from call to call, rates in kb/s.
 */
class CongestionController {
public:
	virtual ~CongestionController() = default;

	/* Events of the flow. An algorithm overrides those that it uses; the others do nothing. */

	/** The receiver has seen congestion (a CNP). */
	virtual void on_cnp(uint64_t) {}
	/** @bytes were sent at @now. */
	virtual void on_sent(uint64_t now, uint64_t bytes)
	{
		static_cast<void>(now);
		static_cast<void>(bytes);
	}
	/** A packet was acknowledged @rtt after it was sent. */
	virtual void on_rtt(uint64_t rtt) { static_cast<void>(rtt); }
	/** The peer has missed a packet. */
	virtual void on_loss() {}
	/** Nothing was acknowledged for as long as the ACK timeout. */
	virtual void on_timeout() {}

	/** The rate at @now. A flow whose rate is max_rate() is not limited. */
	virtual uint64_t rate(uint64_t now) = 0;
	/** When the rate may change without another call of the above. */
	virtual uint64_t next_change() const { return UINT64_MAX; }
};

/** The highest rate of a flow, kb/s, on a link of @link_mbps. */
uint64_t max_rate(const CongestionParameters &parameters, uint32_t link_mbps);

/** The controller that @parameters select, which it refers to; null if the rate is not controlled.
 */
std::unique_ptr<CongestionController> make_controller(const CongestionParameters &parameters,
                                                      uint32_t link_mbps);

} // namespace tern
