// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "abi34.h"
#include "datapath/owned_array.h"

namespace tern::provider {

/** Keeps a T, which counts its users, from being deallocated. */
template <class T>
class Use {
public:
	Use() = default;
	/** @object may be null. */
	explicit Use(T *object) : object_(object)
	{
		if (object_)
			object_->users.fetch_add(1, std::memory_order_relaxed);
	}
	Use(Use &&o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
	Use &operator=(Use &&o) noexcept
	{
		std::swap(object_, o.object_);
		return *this;
	}
	~Use()
	{
		if (object_)
			object_->users.fetch_sub(1, std::memory_order_relaxed);
	}

	T *get() const { return object_; }

private:
	T *object_ = nullptr;
};

/** A thread domain of libibverbs, first: one thread at a time uses what is in it. */
struct ThreadDomain {
	ibv_td verbs;
	std::atomic<uint32_t> users{0}; /* parent domains */

	static ThreadDomain *of(ibv_td *td) { return reinterpret_cast<ThreadDomain *>(td); }
};

/**
 * A PD of libibverbs, first, or a parent domain. To the kernel that is the PD which it stands for;
 * the rest is for us.
 */
struct Pd {
	ibv_pd verbs;
	std::atomic<uint32_t> users{0}; /* parent domains; of one: CQs and queues */

	/* of a parent domain */
	Use<Pd> stands_for;
	Use<ThreadDomain> thread_domain;
	std::optional<Allocator> allocator;

	static Pd *of(ibv_pd *pd) { return reinterpret_cast<Pd *>(pd); }
	bool is_parent_domain() const { return stands_for.get(); }
};

/** A queue's use of a parent domain, if it is in one. */
class DomainUse {
public:
	DomainUse() = default;
	/** @pd may be null, or no parent domain. */
	explicit DomainUse(ibv_pd *pd)
	        : domain_(pd && Pd::of(pd)->is_parent_domain() ? Pd::of(pd) : nullptr)
	{
	}

	const Allocator *allocator() const
	{
		return domain_.get() && domain_.get()->allocator ? &*domain_.get()->allocator
		                                                 : nullptr;
	}
	bool is_single_threaded() const
	{
		return domain_.get() && domain_.get()->thread_domain.get();
	}

private:
	Use<Pd> domain_;
};

} // namespace tern::provider
