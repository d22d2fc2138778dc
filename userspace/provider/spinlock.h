// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <pthread.h>

namespace tern::provider {

/** A pthread spinlock, usable with std::lock_guard. */
class Spinlock {
public:
	Spinlock() { pthread_spin_init(&lock_, PTHREAD_PROCESS_PRIVATE); }
	~Spinlock() { pthread_spin_destroy(&lock_); }
	Spinlock(const Spinlock &) = delete;
	Spinlock &operator=(const Spinlock &) = delete;

	void lock() { pthread_spin_lock(&lock_); }
	void unlock() { pthread_spin_unlock(&lock_); }

private:
	pthread_spinlock_t lock_;
};

} // namespace tern::provider
