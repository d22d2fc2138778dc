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
	/** @fd: a file that holds the memory; without one nobody else can map it. */
	explicit FlatMemory(size_t size, int fd = -1) : size_(size)
	{
		const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
		void *all = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0);
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
	/* An aligned word is what a card in another thread may access at the same time. */
	void peek(Iova from, std::span<std::byte> to) const override
	{
		if (is_word<uint64_t>(from, to.size()))
			load<uint64_t>(from, to);
		else if (is_word<uint32_t>(from, to.size()))
			load<uint32_t>(from, to);
		else
			std::memcpy(to.data(), bytes_ + from, to.size());
	}
	void poke(Iova to, std::span<const std::byte> from) override
	{
		if (is_word<uint64_t>(to, from.size()))
			store<uint64_t>(to, from);
		else if (is_word<uint32_t>(to, from.size()))
			store<uint32_t>(to, from);
		else
			std::memcpy(bytes_ + to, from.data(), from.size());
	}

	std::byte *data(Iova iova) const { return bytes_ + iova; }

private:
	bool holds(Iova iova, size_t length) const
	{
		return iova <= size_ && length <= size_ - iova;
	}
	template <typename Word>
	static bool is_word(Iova iova, size_t length)
	{
		return length == sizeof(Word) && iova % sizeof(Word) == 0;
	}
	template <typename Word>
	void load(Iova from, std::span<std::byte> to) const
	{
		const Word word = at<Word>(from).load(std::memory_order_acquire);
		std::memcpy(to.data(), &word, sizeof(word));
	}
	template <typename Word>
	void store(Iova to, std::span<const std::byte> from)
	{
		Word word;
		std::memcpy(&word, from.data(), sizeof(word));
		at<Word>(to).store(word, std::memory_order_release);
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
