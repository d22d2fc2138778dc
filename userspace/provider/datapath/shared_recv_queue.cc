// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/shared_recv_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "datapath/recv_wqe.h"

namespace tern::provider {

using hw::__le32;

bool SharedRecvQueue::fits(const Buffer &buffer) const
{
	return recv_geometry_ok(buffer.slots.size(), buffer.entries, buffer.log_stride, max_sge_) &&
	       buffer.ring.size() == buffer.entries * sizeof(__le32);
}

OwnedArray<SharedRecvQueue::Slot> SharedRecvQueue::make_slots(uint32_t entries) const
{
	return make_owned_array<Slot>(entries, ArrayType::kSharedRecvRequests, allocator_);
}

int SharedRecvQueue::init(const Buffer &buffer, uint32_t max_sge, const Allocator *allocator)
{
	max_sge_ = max_sge;
	allocator_ = allocator;
	if (!fits(buffer))
		return EINVAL;
	slots_ = make_slots(buffer.entries);
	if (!slots_)
		return ENOMEM;
	buffer_ = buffer;
	for (uint32_t slot = 0; slot < buffer.entries; slot++)
		append_free(slot);
	return 0;
}

void SharedRecvQueue::append_free(uint32_t slot)
{
	if (free_count_++)
		slots_[free_tail_].next_free = slot;
	else
		free_head_ = slot;
	free_tail_ = slot;
}

int SharedRecvQueue::build(uint64_t wr_id, std::span<const ibv_sge> sges)
{
	if (sges.size() > max_sge_)
		return EINVAL;
	if (closed_ || !free_count_)
		return ENOMEM;

	const uint32_t slot = free_head_;
	free_head_ = slots_[slot].next_free;
	free_count_--;

	const size_t stride = size_t{1} << buffer_.log_stride;
	put_recv_wqe(buffer_.slots.subspan(slot * stride, stride), sges);
	/* The ring cannot overflow: it has an entry for each slot. */
	const __le32 number = slot;
	const size_t entry = pi_ & (buffer_.entries - 1);
	std::memcpy(buffer_.ring.data() + entry * sizeof(number), &number, sizeof(number));
	slots_[slot].wr_id = wr_id;
	pi_++;
	return 0;
}

uint64_t SharedRecvQueue::free_slot(uint32_t slot)
{
	slot &= buffer_.entries - 1;
	append_free(slot);
	return slots_[slot].wr_id;
}

int SharedRecvQueue::move(const Buffer &buffer, OwnedArray<Slot> &slots)
{
	if (buffer.entries <= buffer_.entries || buffer.log_stride != buffer_.log_stride ||
	    !fits(buffer))
		return EINVAL;

	const uint32_t old_entries = buffer_.entries;
	std::copy_n(slots_.get(), old_entries, slots.get());
	slots_.swap(slots);
	buffer_ = buffer;
	for (uint32_t slot = old_entries; slot < buffer.entries; slot++)
		append_free(slot);
	return 0;
}

} // namespace tern::provider
