// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/recv_queue.h"

#include <cstddef>

namespace tern {

using namespace hw;

uint32_t RecvQueue::posted(HostMemory &memory)
{
	uint32_t pi;
	if (memory.load_acquire(record_ + offsetof(tern_hw_qp_record, rq_pi), pi) &&
	    pi - head_ <= entries_ && pi - head_ > pi_ - head_)
		pi_ = pi;
	return pi_ - head_;
}

Fetch RecvQueue::fetch(Memory &memory, uint32_t index, RecvWqe &wqe) const
{
	std::array<tern_hw_data_seg, TERN_MAX_RECV_SGE> segs;
	const uint64_t slot = index & (entries_ - 1);
	const unsigned count = (1u << log_stride_) / TERN_SEG_SIZE;

	if (!pages_.read(memory.tables(), memory.host(), offset_ + (slot << log_stride_),
	                 std::as_writable_bytes(std::span(segs).first(count))))
		return Fetch::Fault;

	wqe.sge_count = 0;
	wqe.length = 0;
	for (unsigned i = 0; i < count && segs[i].lkey.get() != TERN_LKEY_END; i++) {
		if (segs[i].length.get() > 1u << 31)
			return Fetch::Invalid;
		wqe.sge[wqe.sge_count++] = {segs[i].addr.get(), segs[i].length.get(),
		                            segs[i].lkey.get()};
		wqe.length += segs[i].length.get();
	}
	return Fetch::Ok;
}

void RecvQueue::reset()
{
	head_ = 0;
	pi_ = 0;
}

} // namespace tern
