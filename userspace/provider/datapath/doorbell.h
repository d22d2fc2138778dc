// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tern/tern_hw.h"

namespace tern::provider {

/** The doorbell page of this process: the only MMIO that a provider does. */
class DoorbellPage {
public:
	DoorbellPage() = default;
	explicit DoorbellPage(std::byte *page) : page_(page) {}

	/** Tells the card that send blocks up to @pi are posted on @qpn. */
	void ring_sq(uint32_t qpn, uint32_t pi) const
	{
		store(hw::TERN_DB_SQ, qpn & TERN_DB_NUM_MASK, pi);
	}

	/** Tells the card that tag operations up to @pi are posted on @srqn. */
	void ring_tag_ops(uint32_t srqn, uint32_t pi) const
	{
		store(hw::TERN_DB_TAG_OPS, srqn & TERN_DB_NUM_MASK, pi);
	}

	/** Asks for an event as soon as @cqn has a CQE at or past @ci. */
	void arm_cq(uint32_t cqn, bool solicited_only, uint32_t ci) const
	{
		const uint32_t flags = solicited_only ? TERN_DB_CQ_SOLICITED : 0;
		store(hw::TERN_DB_CQ_ARM, (cqn & TERN_DB_NUM_MASK) | flags, ci);
	}

	/** The clock of the card, ns (TERN_CAP_CLOCK). */
	uint64_t clock() const
	{
		return *reinterpret_cast<const volatile uint64_t *>(page_ + hw::TERN_DB_CLOCK);
	}

private:
	/*
	 * The card reads rings and records by DMA when a doorbell reaches it, so all that was
	 * written to them must be visible before. On x86 stores stay in order also towards an
	 * uncached page, and only the compiler needs telling. One 8-byte store is one doorbell:
	 * volatile keeps it whole and alone.
	 */
	void store(unsigned offset, uint32_t low, uint32_t index) const
	{
#if defined(__x86_64__)
		std::atomic_signal_fence(std::memory_order_release);
#elif defined(__aarch64__)
		asm volatile("dmb oshst" ::: "memory");
#else
#error "which barrier orders memory before MMIO on this architecture?"
#endif
		const uint64_t value = low | uint64_t{index} << TERN_DB_INDEX_SHIFT;
		*reinterpret_cast<volatile uint64_t *>(page_ + offset) = value;
	}

	std::byte *page_ = nullptr;
};

} // namespace tern::provider
