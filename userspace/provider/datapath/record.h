// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The records: ring indices that host and card share in memory. States the order of all accesses
 * to rings and indices; the order of doorbells is in doorbell.h.
 */
#pragma once

#include <atomic>
#include <cstdint>

#include "datapath/barrier.h"
#include "tern/tern_hw.h"

namespace tern::provider {

/** @field as a word that is read and written atomically. */
inline std::atomic_ref<uint32_t> shared_word(hw::__le32 &field)
{
	return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t *>(&field));
}

/** The indices of a QP or a WQ. */
class QpRecord {
public:
	QpRecord() = default;
	explicit QpRecord(hw::tern_hw_qp_record *record) : record_(record) {}

	/**
	 * Hands receive WQEs before @pi to the card, which reads a WQE as soon as it reads an
	 * index after it: stores to the WQE must come first.
	 */
	void publish_rq(uint32_t pi) const
	{
		to_card_barrier();
		shared_word(record_->rq_pi).store(pi, std::memory_order_relaxed);
	}

	/**
	 * Hands send blocks from @old_pi up to @pi to the card, which finds them without doorbell
	 * while it polls the index. Returns whether it requests the doorbell.
	 *
	 * Stores to the blocks come first, as above. Then a full barrier: the host stores sq_pi and
	 * loads sq_event; before the card goes idle, it stores sq_event and loads sq_pi. If a
	 * load could precede the store of the same side, both sides could read old values, and
	 * the card would stay idle although blocks are posted.
	 */
	bool publish_sq(uint32_t old_pi, uint32_t pi) const
	{
		to_card_barrier();
		shared_word(record_->sq_pi).store(pi, std::memory_order_relaxed);
		full_barrier();
		const uint32_t event =
		        shared_word(record_->sq_event).load(std::memory_order_relaxed);
		return crossed(old_pi, pi, event);
	}

	/** Whether the step from @old_pi to @pi passes @event, modulo 2^32. */
	static constexpr bool crossed(uint32_t old_pi, uint32_t pi, uint32_t event)
	{
		return pi - event - 1 < pi - old_pi;
	}

	/** Resets both producer indices. Only in state RESET, where the card does not read them. */
	void clear() const
	{
		shared_word(record_->rq_pi).store(0, std::memory_order_relaxed);
		shared_word(record_->sq_pi).store(0, std::memory_order_relaxed);
	}

private:
	hw::tern_hw_qp_record *record_ = nullptr;
};

/** The producer index of an SRQ. */
class SrqRecord {
public:
	SrqRecord() = default;
	explicit SrqRecord(hw::tern_hw_srq_record *record) : record_(record) {}

	/**
	 * Hands receive WQEs before @pi to the card, which then reads the entries of the index
	 * ring before @pi and the slots that they name: stores to both come first.
	 */
	void publish(uint32_t pi) const
	{
		to_card_barrier();
		shared_word(record_->pi).store(pi, std::memory_order_relaxed);
	}

private:
	hw::tern_hw_srq_record *record_ = nullptr;
};

/** The consumer index of a CQ. */
class CqRecord {
public:
	CqRecord() = default;
	explicit CqRecord(hw::tern_hw_cq_record *record) : record_(record) {}

	/**
	 * Lets the card reuse the CQEs before @ci. It may overwrite them at once: reads of them
	 * must come first.
	 */
	void publish(uint32_t ci) const
	{
		from_card_barrier();
		shared_word(record_->ci).store(ci, std::memory_order_relaxed);
	}

private:
	hw::tern_hw_cq_record *record_ = nullptr;
};

/** The values of a completion counter. */
class CompRecord {
public:
	CompRecord() = default;
	explicit CompRecord(hw::tern_hw_comp_record *record) : record_(record) {}

	uint64_t completed() const { return load(record_->completed); }
	uint64_t failed() const { return load(record_->failed); }

private:
	/* What the card has written before it counted can be read after this. */
	static uint64_t load(hw::__le64 &field)
	{
		auto &word = *reinterpret_cast<uint64_t *>(&field);
		const uint64_t value =
		        std::atomic_ref<uint64_t>(word).load(std::memory_order_relaxed);
		from_card_barrier();
		return value;
	}

	hw::tern_hw_comp_record *record_ = nullptr;
};

} // namespace tern::provider
