// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/rss_qp.h"

namespace tern {

using namespace hw;

RssQp::RssQp(DataPath &data, const ObjectTable<ReceiveWq> &wqs, const WqTable &table,
             const QpConfig &config, const Spread &spread)
        : Qp(data, config, {}, {}), wqs_(wqs), table_(table), spread_(spread)
{
	state_ = TERN_QPS_RTR;
}

CommandStatus RssQp::check(const tern_hw_modify_qp &) const
{
	return TERN_AQ_BAD_STATE;
}

void RssQp::query(tern_hw_qp_attr &attr) const
{
	attr.state = static_cast<uint8_t>(state_);
	attr.cur_state = attr.state;
}

void RssQp::receive(std::span<const std::byte> frame)
{
	const Stats::Scope scope(data_.stats, stats_set());
	const uint32_t hash = hash_of(read_fields(frame), spread_.fields, spread_.key);
	ReceiveWq *wq = wqs_.find(table_.wqns[hash % table_.wqns.size()]);
	if (wq->receives())
		wq->receive(frame);
	else
		data_.drop(TERN_STAT_RAW_RX_NO_BUFFER, number);
}

} // namespace tern
