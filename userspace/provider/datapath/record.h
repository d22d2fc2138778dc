// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The indices that host and card share in memory. All ordering of rings against them is here. */
#pragma once

#include <atomic>
#include <cstdint>

#include "tern/tern_hw.h"

namespace tern::provider {

/** The word that @field is, to be read and written as a whole. */
inline std::atomic_ref<uint32_t> shared_word(hw::__le32 &field)
{
	return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t *>(&field));
}

/** Indices of a QP. */
class QpRecord {
public:
	QpRecord() = default;
	explicit QpRecord(hw::tern_hw_qp_record *record) : record_(record) {}

	/**
	 * Gives receive WQEs up to @pi to the card. Release: the card takes a WQE for
	 * complete once it reads an index past it.
	 */
	void publish_rq(uint32_t pi) const
	{
		shared_word(record_->rq_pi).store(pi, std::memory_order_release);
	}

	/**
	 * Gives send blocks from @old_pi up to @pi to the card, which may find them by itself.
	 * Returns whether it asks for the doorbell too.
	 *
	 * Release, for the reason above. Then a full fence: we store sq_pi and load sq_event, the
	 * card stores sq_event and loads sq_pi before it goes idle. Neither may pass its
	 * load before its store, or both could read the old value, and the blocks would
	 * lie there with the card asleep.
	 */
	bool publish_sq(uint32_t old_pi, uint32_t pi) const
	{
		shared_word(record_->sq_pi).store(pi, std::memory_order_release);
		std::atomic_thread_fence(std::memory_order_seq_cst);
		const uint32_t event =
		        shared_word(record_->sq_event).load(std::memory_order_relaxed);
		return crossed(old_pi, pi, event);
	}

	/** Whether a step from @old_pi to @pi goes past @event, modulo 2^32. */
	static constexpr bool crossed(uint32_t old_pi, uint32_t pi, uint32_t event)
	{
		return pi - event - 1 < pi - old_pi;
	}

	/** Takes back all posts; while the card does not look at them (QP in RESET). */
	void clear() const
	{
		shared_word(record_->rq_pi).store(0, std::memory_order_relaxed);
		shared_word(record_->sq_pi).store(0, std::memory_order_relaxed);
	}

private:
	hw::tern_hw_qp_record *record_ = nullptr;
};

/** Producer index of an SRQ. */
class SrqRecord {
public:
	SrqRecord() = default;
	explicit SrqRecord(hw::tern_hw_srq_record *record) : record_(record) {}

	/**
	 * Gives receive WQEs up to @pi to the card. Release: once it reads an index it follows
	 * the entries of the index ring before it to their slots, and both must be complete.
	 */
	void publish(uint32_t pi) const
	{
		shared_word(record_->pi).store(pi, std::memory_order_release);
	}

private:
	hw::tern_hw_srq_record *record_ = nullptr;
};

/** Consumer index of a CQ. */
class CqRecord {
public:
	CqRecord() = default;
	explicit CqRecord(hw::tern_hw_cq_record *record) : record_(record) {}

	/**
	 * Gives the CQEs before @ci back to the card. Release: the card may write over them at
	 * once, so our reads of them must have ended.
	 */
	void publish(uint32_t ci) const
	{
		shared_word(record_->ci).store(ci, std::memory_order_release);
	}

private:
	hw::tern_hw_cq_record *record_ = nullptr;
};

} // namespace tern::provider
