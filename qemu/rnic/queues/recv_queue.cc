// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/recv_queue.h"

#include <cstddef>

namespace tern {

using namespace hw;

uint32_t RecvQueue::posted(HostMemory &memory)
{
	if (!entries_)
		return 0;
	uint32_t pi;
	broken_ = !memory.load_acquire(record_ + offsetof(tern_hw_qp_record, rq_pi), pi) ||
	          pi - head_ > entries_;
	if (!broken_ && pi - head_ > pi_ - head_)
		pi_ = pi;
	return pi_ - head_;
}

Fetch RecvQueue::fetch(Memory &memory, uint32_t index, RecvWqe &wqe) const
{
	const uint64_t slot = index & (entries_ - 1);
	return fetch_recv(memory, pages_, offset_ + (slot << log_stride_), log_stride_, wqe);
}

void RecvQueue::reset()
{
	head_ = 0;
	pi_ = 0;
	broken_ = false;
}

} // namespace tern
