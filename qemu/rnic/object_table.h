/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tern {

/**
 * Objects by number, @base + 1 .. @base + capacity. Numbers are reused round-robin, so that a freed
 * one does not return at once; the first @reserved are only for insert_at(). Memory grows with use,
 * not with capacity; objects do not move.
 *
 * Each object has an owner: the doorbell page of a process, or 0 for the kernel. A process can have
 * at most as many objects as numbers remain free, so that it leaves some to others.
 */
template <typename T>
class ObjectTable {
public:
	explicit ObjectTable(uint32_t capacity, uint32_t base = 0, uint32_t reserved = 0)
	        : capacity_(capacity), base_(base), reserved_(reserved), slots_(reserved + 1),
	          owners_(reserved + 1)
	{
	}

	/** The number of the new object; none if the table is full or @owner has its share. */
	std::optional<uint32_t> insert(std::unique_ptr<T> object, uint32_t owner = 0);
	/** Inserts the object at the reserved and unused @number. */
	void insert_at(uint32_t number, std::unique_ptr<T> object);
	/** Null if there is none. */
	T *find(uint32_t number) const
	{
		const uint32_t slot = number - base_;
		return slot < slots_.size() ? slots_[slot].get() : nullptr;
	}
	/** The owner of an object; 0 if there is none. */
	uint32_t owner(uint32_t number) const { return find(number) ? owners_[number - base_] : 0; }
	/** Removes and returns the object; null if there is none. */
	std::unique_ptr<T> remove(uint32_t number);

	/** Calls @f(number, object) for all objects, in order of number. */
	template <typename F>
	void for_each(F f) const
	{
		for_each(0, end(), f);
	}
	/** As above, for slots @first .. @last - 1 of the table, which has end() slots. */
	template <typename F>
	void for_each(uint32_t first, uint32_t last, F f) const
	{
		for (uint32_t slot = first; slot < std::min(last, end()); slot++)
			if (slots_[slot])
				f(base_ + slot, *slots_[slot]);
	}
	uint32_t end() const { return static_cast<uint32_t>(slots_.size()); }

private:
	uint32_t capacity_;
	uint32_t base_;
	uint32_t reserved_;
	/* Whether @owner has as many objects as numbers are free. */
	bool has_share(uint32_t owner) const
	{
		return owner && owner < owned_.size() &&
		       owned_[owner] >= capacity_ - reserved_ - used_;
	}
	std::optional<uint32_t> take_slot();

	std::vector<std::unique_ptr<T>> slots_; /* slot 0 is unused */
	std::vector<uint32_t> owners_;          /* of each slot */
	std::vector<uint32_t> owned_;           /* the number of objects of each owner */
	uint32_t used_ = 0;                     /* slots that insert() has filled */
	std::vector<uint32_t> free_;            /* freed slots, oldest first, from free_head_ on */
	size_t free_head_ = 0;
};

template <typename T>
std::optional<uint32_t> ObjectTable<T>::take_slot()
{
	if (slots_.size() <= capacity_) {
		slots_.emplace_back();
		owners_.emplace_back();
		return end() - 1;
	}
	if (free_head_ == free_.size())
		return std::nullopt;
	const uint32_t slot = free_[free_head_++];
	if (free_head_ > free_.size() / 2) {
		free_.erase(free_.begin(), free_.begin() + static_cast<ptrdiff_t>(free_head_));
		free_head_ = 0;
	}
	return slot;
}

template <typename T>
std::optional<uint32_t> ObjectTable<T>::insert(std::unique_ptr<T> object, uint32_t owner)
{
	if (has_share(owner))
		return std::nullopt;
	const auto slot = take_slot();
	if (!slot)
		return std::nullopt;
	if (owned_.size() <= owner)
		owned_.resize(owner + 1);
	owned_[owner]++;
	used_++;
	owners_[*slot] = owner;
	slots_[*slot] = std::move(object);
	return base_ + *slot;
}

template <typename T>
void ObjectTable<T>::insert_at(uint32_t number, std::unique_ptr<T> object)
{
	slots_[number - base_] = std::move(object);
}

template <typename T>
std::unique_ptr<T> ObjectTable<T>::remove(uint32_t number)
{
	if (!find(number))
		return nullptr;
	const uint32_t slot = number - base_;
	if (slot > reserved_) {
		free_.push_back(slot);
		owned_[owners_[slot]]--;
		used_--;
	}
	return std::move(slots_[slot]);
}

} // namespace tern
