// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/recv_queue.h"

#include <cerrno>

#include "datapath/recv_wqe.h"

namespace tern::provider {

int RecvQueue::init(const Config &config)
{
	if (config.entries) {
		if (!recv_geometry_ok(config.ring.size(), config.entries, config.log_stride,
		                      config.max_sge))
			return EINVAL;
		wr_ids_ = make_owned_array<uint64_t>(config.entries, ArrayType::kRecvRequests,
		                                     config.allocator);
		if (!wr_ids_)
			return ENOMEM;
	}
	config_ = config;
	return 0;
}

int RecvQueue::build(uint64_t wr_id, std::span<const ibv_sge> sges)
{
	if (sges.size() > config_.max_sge)
		return EINVAL;
	/* Acquire: complete() has read the wr_id that this call overwrites. */
	if (pi_ - ci_.load(std::memory_order_acquire) >= config_.entries)
		return ENOMEM;

	const size_t stride = size_t{1} << config_.log_stride;
	const uint32_t index = pi_ & (config_.entries - 1);

	put_recv_wqe(config_.ring.subspan(index * stride, stride), sges);
	wr_ids_[index] = wr_id;
	pi_++;
	return 0;
}

void RecvQueue::reset()
{
	pi_ = 0;
	ci_.store(0, std::memory_order_relaxed);
}

} // namespace tern::provider
