// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/eth_function.h"

#include <algorithm>

#include "qemu/rnic/port/eth_qp.h"
#include "qemu/rnic/port/frame_checksums.h"

namespace tern {

using namespace hw;

namespace {

/* The result of checking the checksums of @frame, as CQE flags. */
uint8_t check(std::span<const std::byte> frame, Stats &stats)
{
	const Checksums checks = verify_checksums(frame);
	if (checks.bad)
		stats.add(TERN_STAT_ETH_RX_CSUM_BAD);
	if (checks.l4_ok)
		stats.add(TERN_STAT_ETH_RX_CSUM_OK);
	return static_cast<uint8_t>((checks.ip_ok ? TERN_CQE_IP_OK : 0) |
	                            (checks.l4_ok ? TERN_CQE_L4_OK : 0));
}

} // namespace

void EthFunction::remove(EthQp &qp)
{
	std::erase(qps_, &qp);
	if (std::ranges::find(spread_.table, &qp) != spread_.table.end())
		spread_ = {};
}

void EthFunction::receive(std::span<const std::byte> frame)
{
	if (qps_.empty()) {
		stats_.add_received(frame.size());
		stats_.add(TERN_STAT_ETH_RX_NO_BUFFER);
		return;
	}
	EthQp *qp = qps_.front();
	uint32_t hash = 0;
	if (!spread_.table.empty()) {
		hash = hash_of(read_fields(frame), spread_.fields, spread_.key);
		qp = spread_.table[hash % spread_.table.size()];
	}
	const Stats::Scope scope(stats_, qp->frame_stats());
	stats_.add_received(frame.size());
	qp->receive(frame, {.flags = check(frame, stats_), .hash = hash});
}

} // namespace tern
