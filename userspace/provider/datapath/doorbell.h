// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstddef>
#include <cstdint>

#include "datapath/barrier.h"
#include "tern/tern_hw.h"

namespace tern::provider {

/** The doorbell page of this process, the only MMIO of the provider. */
class DoorbellPage {
public:
	DoorbellPage() = default;
	explicit DoorbellPage(std::byte *page) : page_(page) {}

	/** Rings the SQ doorbell of @qpn: blocks before @pi are posted. */
	void ring_sq(uint32_t qpn, uint32_t pi) const
	{
		store(hw::TERN_DB_SQ, qpn & TERN_DB_NUM_MASK, pi);
	}

	/** Rings the tag doorbell of @srqn: operations before @pi are posted. */
	void ring_tag_ops(uint32_t srqn, uint32_t pi) const
	{
		store(hw::TERN_DB_TAG_OPS, srqn & TERN_DB_NUM_MASK, pi);
	}

	/** Requests an event as soon as @cqn has a CQE at or after index @ci. */
	void arm_cq(uint32_t cqn, bool solicited_only, uint32_t ci) const
	{
		const uint32_t flags = solicited_only ? TERN_DB_CQ_SOLICITED : 0;
		store(hw::TERN_DB_CQ_ARM, (cqn & TERN_DB_NUM_MASK) | flags, ci);
	}

	/** Reads the card's clock, in ns (TERN_CAP_CLOCK). */
	uint64_t clock() const
	{
		return *reinterpret_cast<const volatile uint64_t *>(page_ + hw::TERN_DB_CLOCK);
	}

private:
	/*
	 * The card reads rings and records by DMA when it receives a doorbell, so earlier stores
	 * to them must be visible first. A doorbell is a single 8-byte store: volatile keeps the
	 * compiler from splitting or merging it.
	 */
	void store(unsigned offset, uint32_t low, uint32_t index) const
	{
		to_card_barrier();
		const uint64_t value = low | uint64_t{index} << TERN_DB_INDEX_SHIFT;
		*reinterpret_cast<volatile uint64_t *>(page_ + offset) = value;
	}

	std::byte *page_ = nullptr;
};

} // namespace tern::provider
