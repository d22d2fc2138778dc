// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <pthread.h>

namespace tern::provider {

/** A pthread spinlock, usable with std::lock_guard. One whose user is alone costs nothing. */
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
	void unlock()
	{
		if (shared_)
			pthread_spin_unlock(&lock_);
	}

	/** The application has promised that one thread at a time gets here. Before any lock(). */
	void set_single_threaded() { shared_ = false; }

private:
	bool shared_ = true;
	pthread_spinlock_t lock_;
};

} // namespace tern::provider
