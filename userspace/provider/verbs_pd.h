// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "abi34.h"
#include "datapath/owned_array.h"

namespace tern::provider {

/** A counted reference to a T, which cannot be deallocated while it has users. */
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

/** A thread domain: one thread at a time uses its objects. */
struct ThreadDomain {
	ibv_td verbs;
	std::atomic<uint32_t> users{0}; /* number of parent domains */

	static ThreadDomain *of(ibv_td *td) { return reinterpret_cast<ThreadDomain *>(td); }
};

/** A PD, or a parent domain, whose kernel handle is that of its base PD. */
struct Pd {
	ibv_pd verbs;
	/* of a PD: its parent domains; of a parent domain: its CQs, QPs, SRQs and WQs */
	std::atomic<uint32_t> users{0};

	/* of a parent domain */
	Use<Pd> base_pd;
	Use<ThreadDomain> thread_domain;
	std::optional<Allocator> allocator;

	static Pd *of(ibv_pd *pd) { return reinterpret_cast<Pd *>(pd); }
	bool is_parent_domain() const { return base_pd.get(); }
};

/** A reference of a CQ, QP, SRQ or WQ to its parent domain, if it has one. */
class DomainUse {
public:
	DomainUse() = default;
	/** @pd may be null or a plain PD: then no reference. */
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
