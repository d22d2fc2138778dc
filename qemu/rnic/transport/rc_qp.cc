// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/rc_qp.h"

namespace tern {

using namespace hw;

namespace {

/* With many QPs, one is not in the caches when its turn comes: prefetch all its cache lines in
 * parallel. */
void prefetch(const RcQp &qp)
{
	constexpr size_t kLine = 64;
	const auto *bytes = reinterpret_cast<const std::byte *>(&qp);
	for (size_t at = 0; at < sizeof(qp); at += kLine)
		__builtin_prefetch(bytes + at);
}

} // namespace

RcQp::RcQp(DataPath &data, const QpConfig &config, SendQueue sq, RecvQueue rq)
        : ConnectedQp(data, config, std::move(sq), std::move(rq)), requester_(*this, data),
          responder_(*this, data)
{
}

void RcQp::stop()
{
	ConnectedQp::stop();
	requester_.stop();
	responder_.reset(Psn());
}

void RcQp::forget_congestion()
{
	ConnectedQp::forget_congestion();
	requester_.forget_timing();
}

void RcQp::apply(uint32_t mask, const tern_hw_qp_attr &attr)
{
	ConnectedQp::apply(mask, attr);
	if (mask & (TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY))
		requester_.refill_retries();
}

void RcQp::release_tags()
{
	ConnectedQp::release_tags();
	requester_.flush_rendezvous();
}

bool RcQp::expects(const Packet &packet) const
{
	switch (config_.type) {
	case TERN_QPT_XRC_INI:
		return !packet.info->is_request();
	case TERN_QPT_XRC_TGT:
		return packet.info->is_request();
	default:
		return true;
	}
}

bool RcQp::deliver(const Packet &packet)
{
	if (!scheduled())
		prefetch(*this);
	if (service_of(packet.bth.opcode) != service() || !expects(packet))
		return false;
	if (!accepts(packet))
		return true;
	if (packet.info->is_request()) {
		note_established();
		responder_.receive(packet);
	} else if (sends()) {
		requester_.receive(packet);
	} else {
		data_.drop(TERN_STAT_RX_BAD_STATE, number);
	}
	return true;
}

uint32_t RcQp::deliver_burst(const Packet &burst)
{
	if (service_of(burst.bth.opcode) != service() || !expects(burst) || !receives() ||
	    !from_peer(burst) || burst.path.congested() || burst.segment != mtu_)
		return 0;
	if (!burst.info->is_request())
		return sends() ? requester_.receive_burst(burst) : 0;
	note_established();
	return responder_.receive_burst(burst);
}

bool RcQp::send_data(unsigned &budget)
{
	prefetch(*this);
	/* While the rate of responses is limited, requests go first in every second turn. */
	requests_first_ = slowed() && !requests_first_;
	if (requests_first_) {
		const bool more = requester_.transmit(budget);
		return responder_.transmit(budget) || more;
	}
	/* Responses come first, because the peer waits for them, but take at most half of the
	 * budget, so that a peer's READs do not block requests. */
	const unsigned share = budget - budget / 2;
	unsigned left = share;
	const bool more = responder_.transmit(left);
	budget -= share - left;
	return requester_.transmit(budget) || more;
}

void RcQp::query(tern_hw_qp_attr &attr) const
{
	IbQp::query(attr);
	/* The current PSNs, as mlx5 reports them. */
	if (receives())
		attr.rq_psn = responder_.expected_psn().value();
	if (sends())
		attr.sq_psn = requester_.next_psn().value();
}

} // namespace tern
