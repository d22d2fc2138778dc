/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "qemu/rnic/environment.h"
#include "qemu/rnic/stats.h"

namespace tern {

/** The host's memory; counts failed accesses (TERN_STAT_DMA_FAULTS). */
class CountedMemory final : public HostMemory {
public:
	CountedMemory(HostMemory &memory, Stats &stats) : memory_(memory), stats_(stats) {}

	bool read(Iova from, std::span<std::byte> to) override
	{
		return counted(memory_.read(from, to));
	}
	bool write(Iova to, std::span<const std::byte> from) override
	{
		return counted(memory_.write(to, from));
	}
	bool store_release(Iova to, uint64_t value) override
	{
		return counted(memory_.store_release(to, value));
	}
	bool load_acquire(Iova from, uint32_t &value) override
	{
		return counted(memory_.load_acquire(from, value));
	}
	void lock_atomics() override { memory_.lock_atomics(); }
	void unlock_atomics() override { memory_.unlock_atomics(); }

private:
	bool counted(bool ok)
	{
		if (!ok)
			stats_.add(hw::TERN_STAT_DMA_FAULTS);
		return ok;
	}

	HostMemory &memory_;
	Stats &stats_;
};

} // namespace tern
