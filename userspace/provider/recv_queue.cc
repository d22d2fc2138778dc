// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "recv_queue.h"

#include <bit>
#include <cerrno>
#include <cstring>

#include "tern/tern_hw.h"

namespace tern::provider {

using namespace tern::hw;

namespace {

/*
 * In a receive WQE lkey 0 ends the list, so an application's 0, which is no key either, must
 * reach the card as another key that no region has: it fails there as it should.
 */
constexpr uint32_t kNoSuchKey = 0x00000002;

uint32_t recv_lkey(uint32_t lkey)
{
	return lkey == TERN_LKEY_END ? kNoSuchKey : lkey;
}

} // namespace

int RecvQueue::init(const Config &config)
{
	if (config.entries) {
		if (!std::has_single_bit(config.entries) || config.log_stride < 4 ||
		    config.log_stride > 9 || config.max_sge > TERN_MAX_RECV_SGE ||
		    config.max_sge * TERN_SEG_SIZE > 1u << config.log_stride ||
		    config.ring.size() != size_t{config.entries} << config.log_stride)
			return EINVAL;
		wr_ids_ = make_owned_array<uint64_t>(config.entries);
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
	/* Acquire: complete() has read the wr_id that we are about to write. */
	if (pi_ - ci_.load(std::memory_order_acquire) >= config_.entries)
		return ENOMEM;

	const size_t stride = size_t{1} << config_.log_stride;
	const uint32_t index = pi_ & (config_.entries - 1);
	std::byte *wqe = config_.ring.data() + index * stride;
	std::byte *const end = wqe + stride;

	for (const ibv_sge &sge : sges) {
		if (!sge.length)
			continue;
		const tern_hw_data_seg seg{sge.addr, sge.length, recv_lkey(sge.lkey)};
		std::memcpy(wqe, &seg, sizeof(seg));
		wqe += sizeof(seg);
	}
	if (wqe != end) {
		const tern_hw_data_seg last{{}, {}, TERN_LKEY_END};
		std::memcpy(wqe, &last, sizeof(last));
	}
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
