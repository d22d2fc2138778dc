// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/shared_recv_queue.h"

#include <cstddef>

namespace tern {

using namespace hw;

bool SharedRecvQueue::reload(Memory &memory)
{
	uint32_t pi;
	if (!memory.host().load_acquire(place_.record + offsetof(tern_hw_srq_record, pi), pi) ||
	    pi - head_ > entries())
		return false;
	pi_ = pi;
	return true;
}

SharedRecvQueue::Take SharedRecvQueue::take(Memory &memory, uint32_t &slot)
{
	if (failed_)
		return Take::Dead;
	const bool known = head_ != pi_ || reload(memory);
	if (known && head_ == pi_)
		return Take::Empty;

	const uint64_t entry = head_ & (entries() - 1);
	__le32 number;
	if (!known ||
	    !place_.pages.read(memory.tables(), memory.host(),
	                       place_.ring_offset + entry * sizeof(number),
	                       std::as_writable_bytes(std::span(&number, 1))) ||
	    number.get() >= entries()) {
		failed_ = true;
		return Take::Failed;
	}
	slot = number.get();
	head_++;
	return Take::Done;
}

Fetch SharedRecvQueue::fetch(Memory &memory, uint32_t slot, RecvWqe &wqe) const
{
	return fetch_recv(memory, place_.pages, uint64_t{slot} << place_.log_stride,
	                  place_.log_stride, wqe);
}

bool SharedRecvQueue::fail()
{
	const bool first = !failed_;
	failed_ = true;
	return first;
}

/* Reads the record only if the known WQEs are fewer than the limit. */
bool SharedRecvQueue::limit_reached(Memory &memory)
{
	if (failed_ || pi_ - head_ >= limit)
		return false;
	/* An invalid record is reported by the next take(). */
	if (!reload(memory) || pi_ - head_ >= limit)
		return false;
	limit = 0;
	return true;
}

} // namespace tern
