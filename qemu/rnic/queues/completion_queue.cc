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

tern_hw_aq_status CompletionQueue::move_to(HostMemory &memory, TableCache &tables,
                                           const Place &place)
{
	if (failed_)
		return TERN_AQ_BAD_STATE;
	reload(memory, place.record);
	if (pi_ - ci_ > place.entries())
		return TERN_AQ_BAD_STATE;
	if (!copy(memory, tables, place))
		return TERN_AQ_DMA_FAULT;
	place_ = place;
	return TERN_AQ_OK;
}

/* Fills the ring at @to: the CQEs of [ci, pi), then entries with the phase of unwritten ones. */
bool CompletionQueue::copy(HostMemory &memory, TableCache &tables, const Place &to) const
{
	std::array<tern_hw_cqe, 64> chunk;
	uint32_t count;
	for (uint32_t i = 0; i < to.entries(); i += count) {
		const uint32_t index = ci_ + i;
		const uint32_t from_slot = index & (place_.entries() - 1);
		const uint32_t to_slot = index & (to.entries() - 1);
		const bool old = i < pi_ - ci_;
		/* Up to the end of either ring, or of the CQEs. */
		count = std::min({uint32_t{chunk.size()}, to.entries() - to_slot,
		                  old ? std::min(place_.entries() - from_slot, pi_ - index)
		                      : to.entries() - i});
		const auto cqes = std::span(chunk).first(count);
		if (!old)
			std::ranges::fill(cqes, tern_hw_cqe{});
		else if (!place_.pages.read(tables, memory, from_slot * sizeof(tern_hw_cqe),
		                            std::as_writable_bytes(cqes)))
			return false;
		for (auto &cqe : cqes)
			cqe.phase = phase_of(index, to.log_size) ^ !old;
		if (!to.pages.write(tables, memory, to_slot * sizeof(tern_hw_cqe),
		                    std::as_bytes(cqes)))
			return false;
	}
	return true;
}

} // namespace tern
