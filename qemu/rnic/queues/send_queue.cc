// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/send_queue.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace tern {

using namespace hw;

bool SendQueue::posted(uint32_t pi)
{
	/* The shadow doorbell may already have announced this post and later ones. */
	if (static_cast<int32_t>(pi - pi_) <= 0)
		return true;
	if (pi - head_ > blocks_)
		return false;
	pi_ = pi;
	return true;
}

/* A host that does not use the shadow doorbell leaves the index at 0. */
void SendQueue::reload(HostMemory &memory)
{
	if (!blocks_)
		return;
	uint32_t pi;
	if (!memory.load_acquire(record_ + offsetof(tern_hw_qp_record, sq_pi), pi) ||
	    (!posted(pi) && pi))
		broken_ = true;
}

bool SendQueue::sleep(HostMemory &memory)
{
	if (!blocks_)
		return true;
	memory.store_release(record_ + offsetof(tern_hw_qp_record, sq_event), pi_);
	/*
	 * The host stores sq_pi, then loads sq_event; the card stores sq_event, then loads sq_pi.
	 * With a full fence on both sides at least one sees the other's store.
	 */
	std::atomic_thread_fence(std::memory_order_seq_cst);
	reload(memory);
	return empty();
}

Fetch SendQueue::fetch(Memory &memory, uint32_t index, SendWqe &wqe) const
{
	const auto read_blocks = [&](uint32_t from, uint32_t count) {
		for (uint32_t i = from; i < count;) {
			const uint32_t slot = (index + i) & (blocks_ - 1);
			const uint32_t n = std::min(count - i, blocks_ - slot);
			if (!pages_.read(memory.tables(), memory.host(),
			                 uint64_t{slot} * TERN_SQ_BLOCK,
			                 std::span(wqe.raw).subspan(i * TERN_SQ_BLOCK,
			                                            n * TERN_SQ_BLOCK)))
				return false;
			i += n;
		}
		return true;
	};

	wqe.blocks = 0;
	wqe.opcode = 0;
	wqe.flags = 0;
	if (!read_blocks(0, 1))
		return Fetch::Fault;
	wqe.opcode = static_cast<uint8_t>(wqe.raw[offsetof(tern_hw_ctrl_seg, opcode)]);
	const auto segs = static_cast<unsigned>(wqe.raw[offsetof(tern_hw_ctrl_seg, segs)]);
	const unsigned blocks = (segs * TERN_SEG_SIZE + TERN_SQ_BLOCK - 1) / TERN_SQ_BLOCK;
	if (segs == 0 || segs > TERN_MAX_SEND_SEGS || blocks > pi_ - index)
		return Fetch::Invalid;
	if (!read_blocks(1, blocks))
		return Fetch::Fault;
	wqe.blocks = static_cast<uint8_t>(blocks);
	return decode(wqe, segs, type_);
}

void SendQueue::reset(HostMemory &memory)
{
	head_ = 0;
	pi_ = 0;
	broken_ = false;
	if (blocks_)
		memory.store_release(record_ + offsetof(tern_hw_qp_record, sq_event), 0);
}

} // namespace tern
