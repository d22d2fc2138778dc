/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

/**
 * The rate limit of a QP: a token bucket, kept as the time at which it is full again. A frame
 * may go when the bucket holds enough; its size is taken out afterwards, so one that is longer
 * borrows. All times are ns of the clock port.
 */
class Pacer {
public:
	/** A new limit, with a full bucket. */
	void set(const hw::tern_hw_rate_limit &limit);

	const hw::tern_hw_rate_limit &limit() const { return limit_; }
	bool limited() const { return rate_ != 0; }
	/** When the next frame may go: in the past when it may now. */
	uint64_t next() const { return full_at_ > slack_ ? full_at_ - slack_ : 0; }
	/** A frame of @size bytes went at @now. */
	void sent(uint64_t now, uint64_t size);
	/** Whether after a frame of @size bytes, sent at @now, the next has to wait. */
	bool exhausted_by(uint64_t now, uint64_t size) const;

private:
	/** ns that @bytes take, rounded down. */
	uint64_t time_of(uint64_t bytes) const { return bytes * kBitNs / rate_; }

	static constexpr uint64_t kBitNs = 8'000'000; /* bits of a byte, times ns at 1 kb/s */

	hw::tern_hw_rate_limit limit_{};
	uint32_t rate_ = 0;  /* kb/s, 0: no limit */
	uint64_t slack_ = 0; /* a frame may go this long before the bucket is full */
	uint64_t full_at_ = 0;
	uint64_t remainder_ = 0; /* of full_at_, in ns / rate_, so that no rounding adds up */
};

} // namespace tern
