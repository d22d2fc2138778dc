/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace tern {

/** A FIFO with access by index. It allocates only when it grows beyond its largest size so far. */
template <typename T>
class RingBuffer {
public:
	bool empty() const { return count_ == 0; }
	size_t size() const { return count_; }

	T &operator[](size_t i) { return slots_[(first_ + i) & (capacity_ - 1)]; }
	const T &operator[](size_t i) const { return slots_[(first_ + i) & (capacity_ - 1)]; }
	T &front() { return (*this)[0]; }
	T &back() { return (*this)[count_ - 1]; }

	void push_back(T value)
	{
		if (count_ == capacity_)
			grow();
		(*this)[count_++] = std::move(value);
	}
	/** Appends a default-constructed element. */
	T &emplace_back()
	{
		if (count_ == capacity_)
			grow();
		return (*this)[count_++] = T();
	}
	void pop_front()
	{
		first_ = (first_ + 1) & (capacity_ - 1);
		count_--;
	}
	void pop_back() { count_--; }
	void clear() { count_ = 0; }

private:
	void grow()
	{
		const size_t capacity = capacity_ ? capacity_ * 2 : 4;
		auto slots = std::make_unique<T[]>(capacity);
		for (size_t i = 0; i < count_; i++)
			slots[i] = std::move((*this)[i]);
		slots_ = std::move(slots);
		capacity_ = capacity;
		first_ = 0;
	}

	std::unique_ptr<T[]> slots_;
	size_t capacity_ = 0; /* a power of two */
	size_t first_ = 0;
	size_t count_ = 0;
};

} // namespace tern
