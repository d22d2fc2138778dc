// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/completion_queue.h"

#include <cstddef>
#include <cstring>

namespace tern {

using namespace hw;

namespace {
constexpr size_t kPublished = 8; /* the last bytes of a CQE, one store */
}

bool CompletionQueue::has_room(HostMemory &memory)
{
	const uint32_t entries = 1u << log_size_;
	if (pi_ - ci_ < entries)
		return true;
	uint32_t ci;
	if (memory.load_acquire(record_ + offsetof(tern_hw_cq_record, ci), ci) &&
	    pi_ - ci <= entries)
		ci_ = ci;
	return pi_ - ci_ < entries;
}

CompletionQueue::Push CompletionQueue::push(HostMemory &memory, TableCache &tables, tern_hw_cqe cqe,
                                            bool solicited)
{
	if (failed_)
		return Push::Dead;

	const uint64_t offset = uint64_t{pi_ & ((1u << log_size_) - 1)} * sizeof(cqe);
	const auto run = pages_.at(tables, memory, offset);
	cqe.phase = !((pi_ >> log_size_) & 1);
	uint64_t last;
	const auto bytes = std::as_bytes(std::span(&cqe, 1));
	std::memcpy(&last, bytes.data() + sizeof(cqe) - kPublished, kPublished);
	if (!has_room(memory) || !run ||
	    !memory.write(run->iova, bytes.first(sizeof(cqe) - kPublished)) ||
	    !memory.store_release(run->iova + sizeof(cqe) - kPublished, last)) {
		failed_ = true;
		return Push::Failed;
	}

	pi_++;
	solicited |= cqe.status != TERN_WC_SUCCESS;
	if (solicited)
		solicited_pi_ = pi_;
	if (armed_ == Armed::No || (armed_ == Armed::Solicited && !solicited))
		return Push::Done;
	armed_ = Armed::No;
	return Push::Event;
}

bool CompletionQueue::arm(uint32_t ci, bool solicited_only)
{
	const uint32_t last = solicited_only ? solicited_pi_ : pi_;
	if (static_cast<int32_t>(last - ci) > 0) {
		armed_ = Armed::No;
		return true;
	}
	/* A request for any completion is not narrowed by a later one for solicited ones
	 * (IBA 11.4.2.2). */
	if (armed_ != Armed::Any)
		armed_ = solicited_only ? Armed::Solicited : Armed::Any;
	return false;
}

} // namespace tern
