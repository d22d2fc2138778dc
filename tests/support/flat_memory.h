/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#include "tests/support/fake_host.h"

namespace tern::test {

/** A host's memory as one plain buffer, which takes room as it is touched: an access costs no more
 * than it must. What is allocated is reachable, and all before it. */
class FlatMemory : public FakeMemory {
public:
	explicit FlatMemory(size_t size) : size_(size)
	{
		void *all = mmap(nullptr, size, PROT_READ | PROT_WRITE,
		                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (all == MAP_FAILED)
			throw std::bad_alloc();
		/* As QEMU asks for with a guest's memory. */
		madvise(all, size, MADV_HUGEPAGE);
		bytes_ = static_cast<std::byte *>(all);
	}
	~FlatMemory() override { munmap(bytes_, size_); }

	bool read(Iova from, std::span<std::byte> to) override
	{
		if (!holds(from, to.size()))
			return false;
		std::memcpy(to.data(), bytes_ + from, to.size());
		return true;
	}
	bool write(Iova to, std::span<const std::byte> from) override
	{
		if (!holds(to, from.size()))
			return false;
		std::memcpy(bytes_ + to, from.data(), from.size());
		return true;
	}
	bool store_release(Iova to, uint64_t value) override
	{
		if (to % sizeof(value) || !holds(to, sizeof(value)))
			return false;
		at<uint64_t>(to).store(value, std::memory_order_release);
		return true;
	}
	bool load_acquire(Iova from, uint32_t &value) override
	{
		if (from % sizeof(value) || !holds(from, sizeof(value)))
			return false;
		value = at<uint32_t>(from).load(std::memory_order_acquire);
		return true;
	}
	void peek(Iova from, std::span<std::byte> to) const override
	{
		std::memcpy(to.data(), bytes_ + from, to.size());
	}
	void poke(Iova to, std::span<const std::byte> from) override
	{
		std::memcpy(bytes_ + to, from.data(), from.size());
	}

	std::byte *data(Iova iova) const { return bytes_ + iova; }

private:
	bool holds(Iova iova, size_t length) const
	{
		return iova <= size_ && length <= size_ - iova;
	}
	template <typename T>
	std::atomic_ref<T> at(Iova iova) const
	{
		return std::atomic_ref<T>(*reinterpret_cast<T *>(bytes_ + iova));
	}

	size_t size_;
	std::byte *bytes_;
};

} // namespace tern::test
