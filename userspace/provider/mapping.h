// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <sys/mman.h>

namespace tern::provider {

/** A mapping of memory of the driver, found by key: queues, records, the doorbell page. */
class Mapping {
public:
	Mapping() = default;
	Mapping(Mapping &&o) noexcept
	        : base_(std::exchange(o.base_, nullptr)), size_(std::exchange(o.size_, 0))
	{
	}
	Mapping &operator=(Mapping &&o) noexcept
	{
		std::swap(base_, o.base_);
		std::swap(size_, o.size_);
		return *this;
	}
	~Mapping()
	{
		if (base_)
			munmap(base_, size_);
	}

	/** Maps @size bytes of @fd at @key. Returns 0 or an errno. */
	int map(int fd, uint64_t key, size_t size, int prot)
	{
		void *p = mmap(nullptr, size, prot, MAP_SHARED, fd, static_cast<off_t>(key));
		if (p == MAP_FAILED)
			return errno;
		*this = Mapping(static_cast<std::byte *>(p), size);
		return 0;
	}

	std::byte *data() const { return base_; }
	size_t size() const { return size_; }

	/** Bytes @offset to @offset + @length, empty if they are not all inside. */
	std::span<std::byte> slice(uint64_t offset, uint64_t length) const
	{
		if (offset > size_ || length > size_ - offset)
			return {};
		return {base_ + offset, length};
	}

	/** The T at @offset, null if it is not all inside. */
	template <class T>
	T *at(uint64_t offset) const
	{
		const auto bytes = slice(offset, sizeof(T));
		return bytes.empty() ? nullptr : reinterpret_cast<T *>(bytes.data());
	}

private:
	Mapping(std::byte *base, size_t size) : base_(base), size_(size) {}

	std::byte *base_ = nullptr;
	size_t size_ = 0;
};

} // namespace tern::provider
