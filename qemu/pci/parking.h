/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How threads wait for one another. */
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "qemu/shm/bell.h"
#include "qemu/shm/event_poll.h"

namespace tern {

/** An answer that one thread waits for and another gives, once: a futex. */
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
	Parking() { poll_.watch(bell_.fd(), shm::EventPoll::News::Bell); }

	/** For what else the sleeper is to hear of. */
	const shm::EventPoll &poll() const { return poll_; }

	/** After making work. No system call unless someone sleeps. */
	void wake();

	/** Sleeps for at most @timeout_ns unless @has_work(). True: poll() has a message. */
	template <typename HasWork>
	bool sleep(std::optional<uint64_t> timeout_ns, HasWork has_work)
	{
		asleep_.store(1, std::memory_order_relaxed);
		std::atomic_thread_fence(std::memory_order_seq_cst);
		const bool message = !has_work() && poll_.wait(timeout_ns);
		asleep_.store(0, std::memory_order_relaxed);
		return message;
	}

private:
	std::atomic<uint32_t> asleep_{0};
	const shm::Bell bell_ = shm::Bell::make();
	const shm::EventPoll poll_;
};

} // namespace tern
