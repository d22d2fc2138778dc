/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <atomic>
#include <bit>
#include <cstring>
#include <span>

#include "qemu/rnic/environment.h"
#include "tern/endian.hpp"

namespace tern {

/** The card's own memory (TERN_BAR_DM), addressed by offset, with the interface of host memory so
 * that page lists can refer to either. The host's processors access it concurrently. */
class DeviceMemory final : public HostMemory {
public:
	/** @bytes: aligned to 8 bytes, or empty. */
	explicit DeviceMemory(std::span<std::byte> bytes) : bytes_(bytes) {}

	/** Whether [@offset, @offset + @length) lies within it. */
	bool holds(uint64_t offset, uint64_t length) const
	{
		return offset <= bytes_.size() && length <= bytes_.size() - offset;
	}

	bool read(Iova from, std::span<std::byte> to) override
	{
		if (!holds(from, to.size()))
			return false;
		std::memcpy(to.data(), bytes_.data() + from, to.size());
		return true;
	}
	bool write(Iova to, std::span<const std::byte> from) override
	{
		if (!holds(to, from.size()))
			return false;
		std::memcpy(bytes_.data() + to, from.data(), from.size());
		return true;
	}
	bool store_release(Iova to, uint64_t value) override
	{
		if (to % sizeof(value) || !holds(to, sizeof(value)))
			return false;
		at<uint64_t>(to).store(std::bit_cast<uint64_t>(Le<uint64_t>(value)),
		                       std::memory_order_release);
		return true;
	}
	bool load_acquire(Iova from, uint32_t &value) override
	{
		if (from % sizeof(value) || !holds(from, sizeof(value)))
			return false;
		const uint32_t raw = at<uint32_t>(from).load(std::memory_order_acquire);
		value = std::bit_cast<Le<uint32_t>>(raw).get();
		return true;
	}

private:
	template <typename T>
	std::atomic_ref<T> at(uint64_t offset) const
	{
		return std::atomic_ref<T>(*reinterpret_cast<T *>(bytes_.data() + offset));
	}

	std::span<std::byte> bytes_;
};

} // namespace tern
