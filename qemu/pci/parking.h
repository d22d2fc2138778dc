/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How threads wait for one another: two uses of a futex. */
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace tern {

/** An answer that one thread waits for and another gives, once. */
class Completion {
public:
	void signal();
	void wait();

private:
	std::atomic<uint32_t> done_{0};
};

/**
 * Where the engine sleeps when it has nothing to do. Nobody is missed: the sleeper
 * says that it sleeps and then looks for work once more, the waker makes work
 * and then looks whether someone sleeps, each with a full fence in between.
 */
class Parking {
public:
	/** After making work. No system call unless someone sleeps. */
	void wake();

	/** Sleeps for at most @timeout_ns unless @has_work(). */
	template <typename HasWork>
	void sleep(std::optional<uint64_t> timeout_ns, HasWork has_work)
	{
		asleep_.store(1, std::memory_order_relaxed);
		std::atomic_thread_fence(std::memory_order_seq_cst);
		if (!has_work())
			block(timeout_ns);
		asleep_.store(0, std::memory_order_relaxed);
	}

private:
	void block(std::optional<uint64_t> timeout_ns);

	std::atomic<uint32_t> asleep_{0};
};

} // namespace tern
