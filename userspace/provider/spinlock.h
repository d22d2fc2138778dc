// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <atomic>

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

/**
 * A spinlock that one thread may hold between calls of the application. Calls of this thread
 * meanwhile find it locked by themselves; those of other threads wait.
 */
class HeldSpinlock {
public:
	void lock()
	{
		if (!is_mine())
			lock_.lock();
	}
	bool try_lock() { return is_mine() || lock_.try_lock(); }
	void unlock()
	{
		if (!is_mine())
			lock_.unlock();
	}

	/** Locks until release() by this thread, which does not hold it. */
	void hold()
	{
		lock_.lock();
		holder_.store(pthread_self(), std::memory_order_relaxed);
	}
	void release()
	{
		holder_.store({}, std::memory_order_relaxed);
		lock_.unlock();
	}

	void set_single_threaded() { lock_.set_single_threaded(); }

private:
	/* Only this thread stores its own identity. */
	bool is_mine() const { return holder_.load(std::memory_order_relaxed) == pthread_self(); }

	std::atomic<pthread_t> holder_{};
	Spinlock lock_;
};

} // namespace tern::provider
