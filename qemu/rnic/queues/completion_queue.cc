// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/completion_queue.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace tern {

using namespace hw;

namespace {

constexpr size_t kPublished = 8;     /* the last bytes of a CQE, one store */
constexpr unsigned kPhaseShift = 56; /* bit of the phase in them */
static_assert(offsetof(tern_hw_cqe, phase) == sizeof(tern_hw_cqe) - 1);

/* The number of CQEs that RESIZE_CQ moves for one unit of the budget. Few, because the processor's
 * cache holds neither the old nor the new ring. */
constexpr uint32_t kMoved = 16;

uint8_t phase_of(uint32_t index, uint8_t log_size)
{
	return !((index >> log_size) & 1);
}

} // namespace

/* Reads the consumer index from the record; an impossible value is ignored. */
void CompletionQueue::reload(HostMemory &memory, Iova record)
{
	uint32_t ci;
	if (memory.load_acquire(record + offsetof(tern_hw_cq_record, ci), ci) &&
	    pi_ - ci <= place_.entries())
		ci_ = ci;
}

bool CompletionQueue::has_room(HostMemory &memory)
{
	if (pi_ - ci_ >= place_.entries())
		reload(memory, place_.record);
	return pi_ - ci_ < place_.entries();
}

CompletionQueue::Outcome CompletionQueue::push(HostMemory &memory, TableCache &tables,
                                               const tern_hw_cqe &cqe, bool solicited)
{
	if (failed_)
		return Outcome::Dead;

	const uint64_t offset = uint64_t{pi_ & (place_.entries() - 1)} * sizeof(cqe);
	PageList::Run run;
	const auto reach = place_.pages.find(tables, memory, offset, sizeof(cqe), true, run);
	const auto bytes = std::as_bytes(std::span(&cqe, 1));
	Le<uint64_t> published;
	std::memcpy(&published, bytes.data() + sizeof(cqe) - kPublished, kPublished);
	const uint64_t last = published.get() | uint64_t{phase_of(pi_, place_.log_size)}
	                                                << kPhaseShift;
	if (!has_room(memory) || reach != Reach::Ok ||
	    !memory.write(run.iova, bytes.first(sizeof(cqe) - kPublished)) ||
	    !memory.store_release(run.iova + sizeof(cqe) - kPublished, last)) {
		failed_ = true;
		return Outcome::Failed;
	}

	pi_++;
	solicited |= cqe.status != TERN_WC_SUCCESS;
	if (solicited)
		solicited_pi_ = pi_;
	if (armed_ == Armed::No || (armed_ == Armed::Solicited && !solicited))
		return Outcome::Done;
	return notify(1);
}

/* @count more CQEs count towards the event. */
CompletionQueue::Outcome CompletionQueue::notify(uint32_t count)
{
	const bool first = waiting_ == 0;
	waiting_ += count;
	if (moderation_.period && (!moderation_.count || waiting_ < moderation_.count))
		return first ? Outcome::Later : Outcome::Done;
	armed_ = Armed::No;
	waiting_ = 0;
	return Outcome::Event;
}

CompletionQueue::Outcome CompletionQueue::arm(uint32_t ci, bool solicited_only)
{
	/* A request for any completion is not narrowed by a later solicited-only one (IBA
	 * 11.4.2.2). */
	if (armed_ != Armed::Any)
		armed_ = solicited_only ? Armed::Solicited : Armed::Any;
	/* CQEs after the last solicited one count only for a request for any. */
	const int32_t unpolled =
	        std::min(static_cast<int32_t>(pi_ - ci), static_cast<int32_t>(place_.entries()));
	const uint32_t silent = armed_ == Armed::Solicited ? pi_ - solicited_pi_ : 0;
	if (unpolled <= 0 || static_cast<uint32_t>(unpolled) <= silent) {
		waiting_ = 0;
		return Outcome::Done;
	}
	const uint32_t count = static_cast<uint32_t>(unpolled) - silent;
	/* A moderation period in progress is not restarted by arming again. */
	waiting_ = std::min(waiting_, count);
	return notify(count - waiting_);
}

CompletionQueue::Outcome CompletionQueue::moderate(const Moderation &moderation)
{
	moderation_ = moderation;
	if (!waiting_)
		return Outcome::Done;
	const uint32_t count = waiting_;
	waiting_ = 0;
	return notify(count);
}

bool CompletionQueue::expire()
{
	if (!waiting_)
		return false;
	armed_ = Armed::No;
	waiting_ = 0;
	return true;
}

std::optional<tern_hw_aq_status> CompletionQueue::move_to(HostMemory &memory, TableCache &tables,
                                                          const Place &place, unsigned &budget)
{
	if (!move_) {
		reload(memory, place.record);
		/* The entries behind the CQEs come first; CQEs that follow overwrite them. */
		move_ = std::make_unique<Move>(
		        Move{.to = place, .ci = ci_, .copied = ci_, .cleared = pi_});
	}
	const auto status = advance_move(memory, tables, budget);
	if (status == TERN_AQ_OK) {
		place_ = move_->to;
		ci_ = move_->ci;
	}
	if (status)
		move_.reset();
	return status;
}

std::optional<tern_hw_aq_status> CompletionQueue::advance_move(HostMemory &memory,
                                                               TableCache &tables, unsigned &budget)
{
	Move &move = *move_;
	for (;; budget--) {
		if (failed_ || pi_ - move.ci > move.to.entries())
			return TERN_AQ_BAD_STATE;
		const bool cleared = move.cleared == move.end();
		if (cleared && move.copied == pi_)
			return TERN_AQ_OK;
		if (!budget)
			return std::nullopt;
		if (!(cleared ? copy_some(memory, tables) : clear_some(memory, tables)))
			return TERN_AQ_DMA_FAULT;
	}
}

/* Gives entries of the new ring the phase of unwritten ones. */
bool CompletionQueue::clear_some(HostMemory &memory, TableCache &tables)
{
	Move &move = *move_;
	std::array<tern_hw_cqe, kMoved> chunk{};
	const uint32_t slot = move.cleared & (move.to.entries() - 1);
	const uint32_t count =
	        std::min({kMoved, move.to.entries() - slot, move.end() - move.cleared});
	const auto cqes = std::span(chunk).first(count);
	for (auto &cqe : cqes)
		cqe.phase = !phase_of(move.cleared, move.to.log_size);
	move.cleared += count;
	return move.to.pages.write(tables, memory, slot * sizeof(tern_hw_cqe), std::as_bytes(cqes));
}

bool CompletionQueue::copy_some(HostMemory &memory, TableCache &tables)
{
	Move &move = *move_;
	std::array<tern_hw_cqe, kMoved> chunk;
	const uint32_t from = move.copied & (place_.entries() - 1);
	const uint32_t to = move.copied & (move.to.entries() - 1);
	const uint32_t count = std::min(
	        {kMoved, place_.entries() - from, move.to.entries() - to, pi_ - move.copied});
	const auto cqes = std::span(chunk).first(count);
	if (!place_.pages.read(tables, memory, from * sizeof(tern_hw_cqe),
	                       std::as_writable_bytes(cqes)))
		return false;
	for (auto &cqe : cqes)
		cqe.phase = phase_of(move.copied, move.to.log_size);
	move.copied += count;
	return move.to.pages.write(tables, memory, to * sizeof(tern_hw_cqe), std::as_bytes(cqes));
}

} // namespace tern
