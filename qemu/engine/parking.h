/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread synchronisation: waiting for a result, and sleeping until there is work. */
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "qemu/shm/bell.h"
#include "qemu/shm/event_poll.h"

namespace tern {

/** A result that one thread waits for and another signals once; a futex. */
class Completion {
public:
	void signal();
	void wait();

private:
	std::atomic<uint32_t> done_{0};
};

/**
 * Where the engine's thread sleeps. No wake-up is lost: the sleeper sets asleep_ and then checks
 * for work, the waker adds work and then checks asleep_, each with a full fence between the two.
 */
class Parking {
public:
	/** Returns false if there was no descriptor left: then nothing can end a sleep. */
	bool can_wake() const { return watched_; }
	/** For other descriptors whose events end the sleep. */
	const shm::EventPoll &poll() const { return poll_; }

	/** Called after adding work. Makes no system call unless the thread sleeps. */
	void wake();

	/** Sleeps at most @timeout_ns unless @has_work(). Returns true if poll() has a message. */
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
	const bool watched_ = poll_.watch(bell_.fd(), shm::EventPoll::News::Bell);
};

} // namespace tern
