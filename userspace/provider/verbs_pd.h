// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "datapath/owned_array.h"
#include "owned.h"
#include "private_abi.h"

namespace tern::provider {

/** Counts the users of an object, which its owner may give up before the last of them is gone. */
class Users {
public:
	bool any() const { return count_.load(std::memory_order_relaxed); }
	void add() { count_.fetch_add(1, std::memory_order_relaxed); }
	/** Removes a user. Returns true if that was the last one of an object that was given up,
	 * which the caller must free then. */
	bool drop() { return count_.fetch_sub(1, std::memory_order_acq_rel) == kGivenUp + 1; }
	/** Returns whether the caller is to free the object: it has no users. */
	bool give_up() { return !count_.fetch_or(kGivenUp, std::memory_order_acq_rel); }

private:
	static constexpr uint32_t kGivenUp = 1u << 31;
	std::atomic<uint32_t> count_{0};
};

/** A counted reference to a T, which is not freed while it has users. */
template <class T>
class Use {
public:
	Use() = default;
	/** @object may be null. */
	explicit Use(T *object) : object_(object)
	{
		if (object_)
			object_->users.add();
	}
	Use(Use &&o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
	Use &operator=(Use &&o) noexcept
	{
		std::swap(object_, o.object_);
		return *this;
	}
	~Use()
	{
		if (object_ && object_->users.drop())
			Owned<T>{object_};
	}

	T *get() const { return object_; }

private:
	T *object_ = nullptr;
};

/** A thread domain: one thread at a time uses its objects. */
struct ThreadDomain {
	ibv_td verbs;
	Users users; /* parent domains */

	static ThreadDomain *of(ibv_td *td) { return reinterpret_cast<ThreadDomain *>(td); }
};

/** A PD, or a parent domain, whose kernel handle is that of its base PD. */
struct Pd {
	ibv_pd verbs;
	/* of a PD: its parent domains; of a parent domain: its CQs, QPs, SRQs and WQs */
	Users users;

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
