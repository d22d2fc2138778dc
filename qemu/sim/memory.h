/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstring>

#include "tests/support/flat_memory.h"

namespace tern::sim {

/** The memory of a simulated host: rings and records of its own, and payload, which all hosts
 * share. What messages say is of no interest, and a thousand hosts would not fit into a cache. */
class Memory final : public test::FlatMemory {
public:
	/** Payload is here and may be of any size. */
	static constexpr Iova kPayload = Iova{1} << 40;

	using FlatMemory::FlatMemory;

	bool read(Iova from, std::span<std::byte> to) override
	{
		if (from < kPayload)
			return FlatMemory::read(from, to);
		return copy(from, to.size(), [&](std::byte *at, size_t done, size_t n) {
			std::memcpy(to.data() + done, at, n);
		});
	}
	bool write(Iova to, std::span<const std::byte> from) override
	{
		if (to < kPayload)
			return FlatMemory::write(to, from);
		return copy(to, from.size(), [&](std::byte *at, size_t done, size_t n) {
			std::memcpy(at, from.data() + done, n);
		});
	}

	/** Any payload of @size bytes, up to a packet's. */
	static std::span<const std::byte> payload(size_t size)
	{
		return std::span(shared_).first(size);
	}

private:
	static constexpr size_t kShared = 64 << 10;

	template <typename F>
	static bool copy(Iova iova, size_t size, F f)
	{
		for (size_t done = 0; done < size;) {
			const size_t offset = (iova + done) % kShared;
			const size_t n = std::min(size - done, kShared - offset);
			f(shared_.data() + offset, done, n);
			done += n;
		}
		return true;
	}

	static inline std::array<std::byte, kShared> shared_{};
};

} // namespace tern::sim
