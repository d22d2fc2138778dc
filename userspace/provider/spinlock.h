// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <pthread.h>

namespace tern::provider {

/** A pthread spinlock for std::lock_guard, which can be disabled for single-threaded objects. */
class Spinlock {
public:
	Spinlock() { pthread_spin_init(&lock_, PTHREAD_PROCESS_PRIVATE); }
	~Spinlock() { pthread_spin_destroy(&lock_); }
	Spinlock(const Spinlock &) = delete;
	Spinlock &operator=(const Spinlock &) = delete;

	void lock()
	{
		if (shared_)
			pthread_spin_lock(&lock_);
	}
	bool try_lock() { return !shared_ || !pthread_spin_trylock(&lock_); }
	void unlock()
	{
		if (shared_)
			pthread_spin_unlock(&lock_);
	}

	/** Disables the lock, for an object that one thread at a time uses. Before any lock(). */
	void set_single_threaded() { shared_ = false; }

private:
	bool shared_ = true;
	pthread_spinlock_t lock_;
};

} // namespace tern::provider
