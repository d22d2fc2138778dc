// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/pci/parking.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tern {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

static void futex_wait(std::atomic<uint32_t> *word, uint32_t expected, const timespec *timeout)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, nullptr, 0);
}

static void futex_wake(std::atomic<uint32_t> *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Completion::signal()
{
	/*
	 * Once it is set, the waiter may go on and *this be gone: the kernel then wakes
	 * nobody at that address, or someone else, who looks and sleeps again.
	 */
	std::atomic<uint32_t> *const word = &done_;
	word->store(1, std::memory_order_release);
	futex_wake(word);
}

void Completion::wait()
{
	while (!done_.load(std::memory_order_acquire))
		futex_wait(&done_, 0, nullptr);
}

void Parking::wake()
{
	std::atomic_thread_fence(std::memory_order_seq_cst);
	if (asleep_.load(std::memory_order_relaxed) &&
	    asleep_.exchange(0, std::memory_order_relaxed))
		futex_wake(&asleep_);
}

void Parking::block(std::optional<uint64_t> timeout_ns)
{
	constexpr uint64_t kSecond = 1'000'000'000;
	timespec timeout{};
	if (timeout_ns) {
		timeout.tv_sec = static_cast<time_t>(*timeout_ns / kSecond);
		timeout.tv_nsec = static_cast<long>(*timeout_ns % kSecond);
	}
	futex_wait(&asleep_, 1, timeout_ns ? &timeout : nullptr);
}

} // namespace tern
