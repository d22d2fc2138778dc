// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/engine/parking.h"

#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tern {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

static void futex_wait(std::atomic<uint32_t> *word, uint32_t expected)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

static void futex_wake(std::atomic<uint32_t> *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Completion::signal()
{
	/*
	 * After this store the waiter may return and *this be destroyed: the kernel then wakes no
	 * thread at that address, or another one, which checks its condition and sleeps again.
	 */
	std::atomic<uint32_t> *const word = &done_;
	word->store(1, std::memory_order_release);
	futex_wake(word);
}

void Completion::wait()
{
	while (!done_.load(std::memory_order_acquire))
		futex_wait(&done_, 0);
}

void Parking::wake()
{
	std::atomic_thread_fence(std::memory_order_seq_cst);
	if (asleep_.load(std::memory_order_relaxed) &&
	    asleep_.exchange(0, std::memory_order_relaxed))
		bell_.ring();
}

} // namespace tern
