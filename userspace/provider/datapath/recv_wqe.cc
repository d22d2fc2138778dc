// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/recv_wqe.h"

#include <bit>
#include <cstring>

#include "tern/tern_hw.h"

namespace tern::provider {

using namespace tern::hw;

namespace {

/*
 * In a receive WQE lkey 0 ends the list. An application's lkey 0 is invalid, so it is replaced by
 * another key that no region has: the request then fails on the card. The card gives index 0 to no
 * region and reserves the lowest keys of that index, so this is the highest one.
 */
constexpr uint32_t kNoSuchKey = 0x000000ff;
static_assert(kNoSuchKey != TERN_LKEY_LOCAL_DMA && kNoSuchKey != TERN_LKEY_NULL);

uint32_t recv_lkey(uint32_t lkey)
{
	return lkey == TERN_LKEY_END ? kNoSuchKey : lkey;
}

} // namespace

bool recv_geometry_ok(size_t size, uint32_t entries, uint8_t log_stride, uint32_t max_sge)
{
	return std::has_single_bit(entries) && log_stride >= 4 && log_stride <= 9 &&
	       max_sge <= TERN_MAX_RECV_SGE && max_sge * TERN_SEG_SIZE <= 1u << log_stride &&
	       size == size_t{entries} << log_stride;
}

void put_recv_wqe(std::span<std::byte> wqe, std::span<const ibv_sge> sges)
{
	std::byte *at = wqe.data();

	for (const ibv_sge &sge : sges) {
		if (!sge.length)
			continue;
		const tern_hw_data_seg seg{sge.addr, sge.length, recv_lkey(sge.lkey)};
		std::memcpy(at, &seg, sizeof(seg));
		at += sizeof(seg);
	}
	if (at != wqe.data() + wqe.size()) {
		const tern_hw_data_seg last{{}, {}, TERN_LKEY_END};
		std::memcpy(at, &last, sizeof(last));
	}
}

} // namespace tern::provider
