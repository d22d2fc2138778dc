// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/tag_queue.h"

#include <bit>
#include <cerrno>
#include <cstring>

namespace tern::provider {

using namespace tern::hw;

int TagQueue::init(const Config &config)
{
	const size_t count = config.ring.size() / sizeof(tern_hw_tag_op);

	if (!std::has_single_bit(count) || config.ring.size() % sizeof(tern_hw_tag_op) ||
	    !config.entries)
		return EINVAL;
	operations_ =
	        make_owned_array<Operation>(count, ArrayType::kTagOperations, config.allocator);
	entries_ =
	        make_owned_array<Entry>(config.entries, ArrayType::kTagEntries, config.allocator);
	if (!operations_ || !entries_)
		return ENOMEM;
	config_ = config;
	operations_count_ = static_cast<uint32_t>(count);
	for (uint32_t entry = 0; entry < config.entries; entry++)
		entries_[entry].next_free = entry + 1;
	return 0;
}

int TagQueue::build_add(ibv_ops_wr &wr, tern_hw_tag_op &op)
{
	if (wr.tm.add.num_sge && (wr.tm.add.num_sge != 1 || !wr.tm.add.sg_list))
		return EINVAL;
	if (free_head_ == config_.entries)
		return ENOMEM;

	Entry &entry = entries_[free_head_];
	wr.tm.handle = free_head_;
	free_head_ = entry.next_free;
	entry.wr_id = wr.tm.add.recv_wr_id;
	op.opcode = TERN_TAG_ADD;
	op.entry = wr.tm.handle;
	op.tag = wr.tm.add.tag;
	op.mask = wr.tm.add.mask;
	if (wr.tm.add.num_sge) {
		op.buf.addr = wr.tm.add.sg_list->addr;
		op.buf.length = wr.tm.add.sg_list->length;
		op.buf.lkey = wr.tm.add.sg_list->lkey;
	}
	return 0;
}

int TagQueue::build(ibv_ops_wr &wr)
{
	constexpr int kKnownFlags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
	tern_hw_tag_op op = {};

	if (wr.flags & ~kKnownFlags)
		return EINVAL;
	if (pi_ - ci_ == operations_count_)
		return ENOMEM;
	switch (wr.opcode) {
	case IBV_WR_TAG_ADD:
		if (const int err = build_add(wr, op))
			return err;
		break;
	case IBV_WR_TAG_DEL:
		if (wr.tm.handle >= config_.entries)
			return EINVAL;
		op.opcode = TERN_TAG_DEL;
		op.entry = wr.tm.handle;
		break;
	case IBV_WR_TAG_SYNC:
		op.opcode = TERN_TAG_SYNC;
		break;
	default:
		return EINVAL;
	}
	if (wr.flags & IBV_OPS_SIGNALED)
		op.flags |= TERN_TAG_SIGNALED;
	if (wr.flags & IBV_OPS_TM_SYNC) {
		op.flags |= TERN_TAG_COUNT;
		op.unexpected = wr.tm.unexpected_cnt;
	}

	const uint32_t place = pi_++ & (operations_count_ - 1);
	operations_[place] = {wr.wr_id, op.entry.get(), op.opcode};
	std::memcpy(config_.ring.data() + place * sizeof(op), &op, sizeof(op));
	return 0;
}

/* ring_tag_ops() orders the stores to the ring before the doorbell. */
void TagQueue::publish()
{
	if (published_ == pi_)
		return;
	published_ = pi_;
	config_.doorbells.ring_tag_ops(config_.srqn, pi_);
}

/*
 * Earlier operations without a CQE succeeded, so each deletion among them frees its entry. The
 * completed operation frees its entry if it deleted the buffer or failed to add it. A deletion
 * fails if the buffer has matched a message, whose completion frees the entry.
 */
uint64_t TagQueue::complete(uint32_t index, bool ok)
{
	const std::lock_guard guard(lock_);
	const Operation &last = operations_[index & (operations_count_ - 1)];

	/* Stop at pi_ if @index is not an outstanding operation. */
	for (; ci_ != index && ci_ != pi_; ci_++) {
		const Operation &op = operations_[ci_ & (operations_count_ - 1)];
		if (op.opcode == TERN_TAG_DEL)
			free_entry(op.entry);
	}
	if (ci_ != pi_)
		ci_++;
	if (last.opcode == (ok ? TERN_TAG_DEL : TERN_TAG_ADD))
		free_entry(last.entry);
	return last.wr_id;
}

uint64_t TagQueue::receive(uint32_t entry, bool ended)
{
	const std::lock_guard guard(lock_);

	if (entry >= config_.entries)
		return 0;
	const uint64_t wr_id = entries_[entry].wr_id;
	if (ended)
		free_entry(entry);
	return wr_id;
}

void TagQueue::free_entry(uint32_t entry)
{
	entries_[entry].next_free = free_head_;
	free_head_ = entry;
}

} // namespace tern::provider
