/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "qemu/rnic/congestion/parameters.h"
#include "qemu/rnic/transport/pacer.h"
#include "qemu/rnic/transport/qp_side.h"
#include "qemu/rnic/transport/rate_control.h"
#include "tern/tern_hw.h"

namespace tern {

/** What limits the rate of a QP's frames: the limit of MODIFY_QP, which is for requests alone,
 * congestion control, and an injected fault. Times are in ns of the clock port. */
class QpRates {
public:
	void set_limit(const hw::tern_hw_rate_limit &limit) { limit_.set(limit); }
	const hw::tern_hw_rate_limit &limit() const { return limit_.limit(); }
	/** Limits requests and responses to @rate, kb/s. 0: no limit. */
	void inject(uint32_t rate);
	/** The rate of inject(). */
	uint32_t injected() const { return injected_ ? injected_->limit().rate.get() : 0; }
	/** Congestion control, which acts from the first call on. @parameters must select a
	 * controller and outlive this. */
	RateControl &control(const CongestionParameters &parameters, uint32_t link_mbps);
	void forget_congestion() { control_.reset(); }

	/** Whether frames never wait, and need not be accounted for. */
	bool none() const { return !limit_.limited() && !control_ && !injected_; }
	/** Whether the rate of responses is limited. */
	bool limits_responses(uint64_t now) const
	{
		return injected_ || (control_ && control_->limited(now));
	}
	bool limits_requests(uint64_t now) const
	{
		return limit_.limited() || limits_responses(now);
	}
	/** When the next frame of @side may be sent; not later than @now if it may be sent now. */
	uint64_t next(QpSide side, uint64_t now) const;
	/** Returns whether the request after one of @size bytes would have to wait. */
	bool exhausted_by(uint64_t now, size_t size) const;
	/** A frame of @size bytes was sent. */
	void sent(QpSide side, uint64_t now, size_t size);

private:
	bool limits(QpSide side) const { return side == QpSide::Requester && limit_.limited(); }

	Pacer limit_;
	std::unique_ptr<RateControl> control_; /* from the first CNP or RTT on */
	std::unique_ptr<Pacer> injected_;      /* null: none */
};

} // namespace tern
