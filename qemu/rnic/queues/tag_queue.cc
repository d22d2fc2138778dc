// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/tag_queue.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "qemu/rnic/all_zero.h"
#include "qemu/rnic/queues/wqe.h"

namespace tern {

using namespace hw;

namespace {

constexpr uint8_t kKnownFlags = TERN_TAG_SIGNALED | TERN_TAG_COUNT;

bool valid(const tern_hw_tag_op &op)
{
	if ((op.flags & ~kKnownFlags) || op.rsvd0[0] || op.rsvd0[1] || op.rsvd1.get() ||
	    (!(op.flags & TERN_TAG_COUNT) && op.unexpected.get()))
		return false;
	switch (op.opcode) {
	case TERN_TAG_ADD:
		return all_zero(op, offsetof(tern_hw_tag_op, rsvd2)) &&
		       op.buf.length.get() <= kMaxSgeLength;
	case TERN_TAG_DEL:
		return all_zero(op, offsetof(tern_hw_tag_op, tag));
	case TERN_TAG_SYNC:
		return !op.entry.get() && all_zero(op, offsetof(tern_hw_tag_op, tag));
	default:
		return false;
	}
}

uint8_t cqe_opcode(uint8_t opcode)
{
	switch (opcode) {
	case TERN_TAG_ADD:
		return TERN_CQE_TAG_ADD;
	case TERN_TAG_DEL:
		return TERN_CQE_TAG_DEL;
	default:
		return TERN_CQE_TAG_SYNC;
	}
}

} // namespace

bool TagQueue::ring(uint32_t pi)
{
	/* A doorbell overtaken by a later one has no effect. */
	if (static_cast<int32_t>(pi - pi_) <= 0)
		return true;
	if (pi - ci_ > 1u << config_.log_ring)
		return false;
	pi_ = pi;
	return true;
}

TagQueue::Step TagQueue::execute(Memory &memory, tern_hw_cqe &cqe)
{
	const uint64_t place = ci_ & ((1u << config_.log_ring) - 1);
	tern_hw_tag_op op;
	if (!config_.pages.read(memory.tables(), memory.host(),
	                        config_.ring_offset + place * sizeof(op),
	                        std::as_writable_bytes(std::span(&op, 1))))
		return Step::Fault;

	const auto status = valid(op) ? execute(op) : TERN_WC_LOC_QP_OP_ERR;
	if ((op.flags & TERN_TAG_COUNT) && status != TERN_WC_LOC_QP_OP_ERR)
		list_.synchronize(op.unexpected.get());
	cqe = {};
	cqe.wqe_index = ci_++;
	cqe.opcode = cqe_opcode(op.opcode);
	cqe.status = static_cast<uint8_t>(status);
	cqe.flags = list_.synchronized() ? 0 : TERN_CQE_TAG_SYNC_REQ;
	return status != TERN_WC_SUCCESS || (op.flags & TERN_TAG_SIGNALED) ? Step::Complete
	                                                                   : Step::Done;
}

tern_hw_cqe_status TagQueue::execute(const tern_hw_tag_op &op)
{
	const Sge buffer{op.buf.addr.get(), op.buf.length.get(), op.buf.lkey.get()};
	switch (op.opcode) {
	case TERN_TAG_ADD:
		return list_.add(op.entry.get(), op.tag.get(), op.mask.get(), buffer)
		               ? TERN_WC_SUCCESS
		               : TERN_WC_LOC_QP_OP_ERR;
	case TERN_TAG_DEL:
		switch (list_.remove(op.entry.get())) {
		case TagList::Removed::Done:
			return TERN_WC_SUCCESS;
		case TagList::Removed::NotListed:
			return TERN_WC_TM_ERR;
		default:
			return TERN_WC_LOC_QP_OP_ERR;
		}
	default:
		return TERN_WC_SUCCESS;
	}
}

} // namespace tern
