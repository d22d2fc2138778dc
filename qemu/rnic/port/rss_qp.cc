// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/rss_qp.h"

#include "qemu/rnic/card.h"

namespace tern {

using namespace hw;

RssQp::RssQp(Card &card, const QpConfig &config, const Spread &spread)
        : Qp(card, config, {}, {}), spread_(spread)
{
	state_ = TERN_QPS_RTR;
}

tern_hw_aq_status RssQp::modify(uint32_t, const tern_hw_qp_attr &)
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
	const auto &wqns = card_.wq_tables.find(config_.wq_table)->wqns;
	const uint32_t hash = hash_of(read_fields(frame), spread_.fields, spread_.key);
	ReceiveWq *wq = card_.wqs.find(wqns[hash % wqns.size()]);
	if (wq->receives())
		wq->receive(frame);
	else
		card_.stats.add(TERN_STAT_RAW_RX_NO_BUFFER);
}

} // namespace tern
