/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <atomic>
#include <cstdint>

#include "qemu/rnic/environment.h"
#include "qemu/shm/monotonic.h"

namespace tern {

/**
 * The card's clock. It stands still while the machine is stopped, so that no timer expires. The
 * engine's thread stops and starts it; any thread may read it, hence a single word.
 */
class StoppableClock final : public Clock {
public:
	uint64_t now() override
	{
		const uint64_t state = state_.load(std::memory_order_relaxed);
		return state & kStopped ? state >> 1 : monotonic_ns() - (state >> 1);
	}

	void stop() { state_.store(now() << 1 | kStopped, std::memory_order_relaxed); }
	void start()
	{
		const uint64_t state = state_.load(std::memory_order_relaxed);
		if (state & kStopped)
			state_.store((monotonic_ns() - (state >> 1)) << 1,
			             std::memory_order_relaxed);
	}

private:
	static constexpr uint64_t kStopped = 1;

	/* 63:1: the time if stopped, else the offset to the monotonic clock; 0: kStopped */
	std::atomic<uint64_t> state_{monotonic_ns() << 1 | kStopped};
};

} // namespace tern
