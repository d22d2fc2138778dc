/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstring>

#include "tests/support/flat_memory.h"

namespace tern::sim {

/** The memory of a simulated host. It stores rings and records, but no payload: nobody looks at
 * that, and it would displace other data from the cache. Payload reads as zeroes. */
class Memory final : public test::FlatMemory {
public:
	/** Addresses of payload begin here. */
	static constexpr Iova kPayload = Iova{1} << 40;

	using FlatMemory::FlatMemory;

	bool read(Iova from, std::span<std::byte> to) override
	{
		if (from < kPayload)
			return FlatMemory::read(from, to);
		std::memset(to.data(), 0, to.size());
		return true;
	}
	bool write(Iova to, std::span<const std::byte> from) override
	{
		if (to < kPayload)
			return FlatMemory::write(to, from);
		return true;
	}

	/** Any payload of @size bytes, up to a packet's. */
	static std::span<const std::byte> payload(size_t size)
	{
		return std::span(kZeroes).first(size);
	}

private:
	static constexpr std::array<std::byte, kMaxPathMtu> kZeroes{};
};

} // namespace tern::sim
