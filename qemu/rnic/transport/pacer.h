/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

/**
 * The rate limit of a QP: a token bucket, represented by the time at which it is full. A frame may
 * be sent when the bucket holds enough tokens; its size is subtracted afterwards, so a longer frame
 * leaves a debt. All times in ns of the clock port.
 */
class Pacer {
public:
	/** Sets a new limit and fills the bucket. */
	void set(const hw::tern_hw_rate_limit &limit);

	/** Sets a rate, kb/s and not 0, with an empty bucket: one frame may be sent now. A frame
	 * that goes up to @slack later than it might costs the rate nothing. */
	void set(uint64_t now, uint32_t rate, uint64_t slack);
	/** Changes the rate, kb/s and not 0, from @now on; the debt in bytes stays. */
	void change_rate(uint64_t now, uint32_t rate);

	const hw::tern_hw_rate_limit &limit() const { return limit_; }
	bool limited() const { return rate_ != 0; }
	/** When the next frame may be sent; not later than now if it may be sent now. */
	uint64_t next() const { return full_at_ > slack_ ? full_at_ - slack_ : 0; }
	/** A frame of @size bytes was sent at @now. */
	void sent(uint64_t now, uint64_t size);
	/** Whether the next frame must wait after one of @size bytes is sent at @now. */
	bool exhausted_by(uint64_t now, uint64_t size) const;

private:
	/** Duration of @bytes at the rate, ns, rounded down. */
	uint64_t time_of(uint64_t bytes) const { return bytes * kBitNs / rate_; }

	static constexpr uint64_t kBitNs = 8'000'000; /* bits per byte, times ns at 1 kb/s */

	hw::tern_hw_rate_limit limit_{};
	uint32_t rate_ = 0;  /* kb/s, 0: no limit */
	uint64_t slack_ = 0; /* how long before the bucket is full a frame may be sent */
	uint64_t full_at_ = 0;
	uint64_t remainder_ = 0; /* fraction of full_at_, in ns / rate_ */
};

} // namespace tern
