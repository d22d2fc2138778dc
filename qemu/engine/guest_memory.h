/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

#include "qemu/engine/engine.h"
#include "qemu/rnic/environment.h"

namespace tern {

/** Accesses the guest's memory by the front end's functions for DMA. Only the engine's thread may
 * use it. */
class GuestMemory final : public HostMemory {
public:
	/** @first: that of the card's engine 0; null for engine 0. */
	GuestMemory(const tern_engine_ops &ops, void *opaque, GuestMemory *first)
	        : ops_(ops), opaque_(opaque), atomics_(first ? first->own_atomics_ : own_atomics_)
	{
	}

	/** Makes each access up to release() cheaper; the memory map cannot change meanwhile. */
	void hold()
	{
		if (!std::exchange(held_, true))
			ops_.dma_hold(opaque_);
	}
	void release()
	{
		if (std::exchange(held_, false))
			ops_.dma_release(opaque_);
	}

	bool read(Iova from, std::span<std::byte> to) override
	{
		return ops_.dma_read(opaque_, from, to.data(), to.size());
	}
	bool write(Iova to, std::span<const std::byte> from) override
	{
		return ops_.dma_write(opaque_, to, from.data(), from.size());
	}
	bool store_release(Iova to, uint64_t value) override
	{
		return ops_.dma_store64(opaque_, to, value);
	}
	bool load_acquire(Iova from, uint32_t &value) override
	{
		return ops_.dma_load32(opaque_, from, &value);
	}
	void lock_atomics() override { atomics_.lock(); }
	void unlock_atomics() override { atomics_.unlock(); }

	/** Finds the parts of @range in RAM that other hosts can read, and writes them to @found.
	 * Returns their number, or 0 if a part is not in such RAM or @found is too small. */
	size_t find_shared(const HostRange &range, std::span<tern_ram_range> found) const
	{
		return ops_.dma_find_shared(opaque_, range.iova, range.size, found.data(),
		                            found.size());
	}

private:
	const tern_engine_ops &ops_;
	void *const opaque_;
	bool held_ = false;

	/* Protects atomic operations on memory against those of the card's other engines: all use
	 * the mutex of engine 0. Held during one operation; a thread that holds it may take the
	 * BQL, so a thread with the BQL never takes it. */
	std::mutex own_atomics_;
	std::mutex &atomics_;
};

} // namespace tern
