// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/rc_qp.h"

#include <algorithm>
#include <cstring>

namespace tern {

using namespace hw;

namespace {

/*
 * In ERR a post to the receive queue rings no doorbell and must be flushed all the same: the record
 * is looked at from time to time, the less often the longer nothing came.
 */
constexpr uint64_t kFlushIntervalMin = 1'000'000;
constexpr uint64_t kFlushIntervalMax = 64'000'000;

/* Attributes that a transition of an RC QP must and may have (IBA 11.2.5.2, table 97). */
struct Transition {
	tern_hw_qp_state from;
	tern_hw_qp_state to;
	uint32_t required;
	uint32_t optional;
};

constexpr uint32_t kInit = TERN_QP_PKEY_INDEX | TERN_QP_PORT | TERN_QP_ACCESS_FLAGS;
constexpr uint32_t kRunning = TERN_QP_CUR_STATE | TERN_QP_ACCESS_FLAGS | TERN_QP_MIN_RNR_TIMER;

constexpr Transition kTransitions[] = {
        {TERN_QPS_RESET, TERN_QPS_INIT, kInit, 0},
        {TERN_QPS_INIT, TERN_QPS_INIT, 0, kInit},
        {TERN_QPS_INIT, TERN_QPS_RTR,
         TERN_QP_AV | TERN_QP_PATH_MTU | TERN_QP_DEST_QPN | TERN_QP_RQ_PSN |
                 TERN_QP_MAX_DEST_RD_ATOMIC | TERN_QP_MIN_RNR_TIMER,
         TERN_QP_ACCESS_FLAGS | TERN_QP_PKEY_INDEX},
        {TERN_QPS_RTR, TERN_QPS_RTS,
         TERN_QP_TIMEOUT | TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY | TERN_QP_SQ_PSN |
                 TERN_QP_MAX_QP_RD_ATOMIC,
         kRunning},
        {TERN_QPS_RTS, TERN_QPS_RTS, 0, kRunning},
        {TERN_QPS_RTS, TERN_QPS_SQD, 0, TERN_QP_EN_SQD_ASYNC_NOTIFY},
        {TERN_QPS_SQD, TERN_QPS_SQD, 0,
         TERN_QP_PKEY_INDEX | TERN_QP_PORT | TERN_QP_ACCESS_FLAGS | TERN_QP_AV |
                 TERN_QP_MIN_RNR_TIMER | TERN_QP_TIMEOUT | TERN_QP_RETRY_CNT | TERN_QP_RNR_RETRY |
                 TERN_QP_MAX_QP_RD_ATOMIC | TERN_QP_MAX_DEST_RD_ATOMIC},
        {TERN_QPS_SQD, TERN_QPS_RTS, 0, kRunning},
};

bool transition_valid(tern_hw_qp_state from, tern_hw_qp_state to, uint32_t mask)
{
	const uint32_t attributes = mask & ~TERN_QP_STATE;
	if (to == TERN_QPS_RESET || to == TERN_QPS_ERR)
		return attributes == 0;
	return std::ranges::any_of(kTransitions, [&](const Transition &t) {
		return t.from == from && t.to == to && (attributes & t.required) == t.required &&
		       (attributes & ~(t.required | t.optional)) == 0;
	});
}

uint32_t mtu_bytes(uint8_t code)
{
	return 128u << code;
}

/* Values of those attributes that @mask names. */
bool values_valid(uint32_t mask, const tern_hw_qp_attr &a)
{
	const auto within = [mask](uint32_t bit, uint64_t value, uint64_t low, uint64_t high) {
		return !(mask & bit) || (value >= low && value <= high);
	};
	constexpr uint8_t kRemoteRights = TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_WRITE |
	                                  TERN_ACCESS_REMOTE_READ | TERN_ACCESS_REMOTE_ATOMIC;
	return within(TERN_QP_ACCESS_FLAGS, a.access & ~kRemoteRights, 0, 0) &&
	       within(TERN_QP_PATH_MTU, a.path_mtu, 1, 5) &&
	       within(TERN_QP_TIMEOUT, a.timeout, 0, 31) &&
	       within(TERN_QP_RETRY_CNT, a.retry_cnt, 0, 7) &&
	       within(TERN_QP_RNR_RETRY, a.rnr_retry, 0, 7) &&
	       within(TERN_QP_MIN_RNR_TIMER, a.min_rnr_timer, 0, 31) &&
	       within(TERN_QP_MAX_QP_RD_ATOMIC, a.max_rd_atomic, 0, kMaxRdAtomic) &&
	       within(TERN_QP_MAX_DEST_RD_ATOMIC, a.max_dest_rd_atomic, 0, kMaxRdAtomic) &&
	       within(TERN_QP_RQ_PSN, a.rq_psn.get(), 0, Psn::kMask) &&
	       within(TERN_QP_SQ_PSN, a.sq_psn.get(), 0, Psn::kMask) &&
	       within(TERN_QP_DEST_QPN, a.dest_qpn.get(), 0, 0xffffff) &&
	       within(TERN_QP_PKEY_INDEX, a.pkey_index.get(), 0, 0) &&
	       within(TERN_QP_PORT, a.port, 1, 1) &&
	       within(TERN_QP_AV, a.flow_label.get(), 0, 0xfffff) &&
	       within(TERN_QP_AV, a.sl, 0, 15) &&
	       within(TERN_QP_EN_SQD_ASYNC_NOTIFY, a.en_sqd_async_notify, 0, 1);
}

} // namespace

RcQp::RcQp(Card &card, const QpConfig &config, SendQueue sq, RecvQueue rq)
        : Qp(card, config, std::move(sq), std::move(rq)), requester_(*this), responder_(*this)
{
}

/* ---- data path ---- */

bool RcQp::receives() const
{
	return state_ == TERN_QPS_RTR || state_ == TERN_QPS_RTS || state_ == TERN_QPS_SQD;
}

bool RcQp::deliver(const Packet &packet)
{
	if (service_of(packet.bth.opcode) != Service::Rc)
		return false;
	if (!receives()) {
		card_.stats.add(TERN_STAT_RX_BAD_STATE);
		return true;
	}
	/* The GIDs of the connection (IBA 9.6.1.1 and 9.6.1.2), in its VLAN and protocol. */
	if (packet.path.sgid != remote_gid_ || packet.path.dgid != local_gid_ ||
	    packet.path.vlan != vlan_ || packet.path.roce_v2 != path_.roce_v2()) {
		card_.stats.add(TERN_STAT_RX_BAD_ADDR);
		return true;
	}
	if (packet.info->is_request()) {
		if (state_ == TERN_QPS_RTR && !established_)
			card_.raise_event(TERN_EVENT_COMM_EST, number);
		established_ = true;
		responder_.receive(packet);
	} else if (sends()) {
		requester_.receive(packet);
	} else {
		card_.stats.add(TERN_STAT_RX_BAD_STATE);
	}
	return true;
}

bool RcQp::transmit(unsigned &budget)
{
	/* What the host posted in ERR. */
	if (state_ == TERN_QPS_ERR)
		flush_send();
	/* Responses first, for the peer waits for them; but one that reads and reads gets half. */
	const unsigned share = budget - budget / 2;
	unsigned left = share;
	const bool more = responder_.transmit(left);
	budget -= share - left;
	return requester_.transmit(budget) || more;
}

void RcQp::on_timer(uint64_t now)
{
	if (state_ == TERN_QPS_ERR) {
		flush_send();
		flush_interval_ = flush_recv() ? kFlushIntervalMin
		                               : std::min(flush_interval_ * 2, kFlushIntervalMax);
		schedule_flush();
	} else if (sends()) {
		requester_.on_timer(now);
	}
}

void RcQp::schedule_flush()
{
	card_.set_timer(*this, card_.ports.clock.now() + flush_interval_);
}

void RcQp::enter_error()
{
	if (state_ == TERN_QPS_ERR)
		return;
	state_ = TERN_QPS_ERR;
	requester_.flush();
	flush_send();
	flush_recv();
	flush_interval_ = kFlushIntervalMin;
	schedule_flush();
	/* Responses that wait still go out. */
	card_.port.activate(*this);
}

void RcQp::check_drained()
{
	if (state_ != TERN_QPS_SQD || !draining_ || !requester_.idle())
		return;
	draining_ = false;
	if (attr_.en_sqd_async_notify)
		card_.raise_event(TERN_EVENT_SQ_DRAINED, number);
}

/* ---- MODIFY_QP ---- */

tern_hw_aq_status RcQp::check(uint32_t mask, const tern_hw_qp_attr &attr) const
{
	const auto to = (mask & TERN_QP_STATE) ? static_cast<tern_hw_qp_state>(attr.state) : state_;
	if (!transition_valid(state_, to, mask))
		return TERN_AQ_BAD_STATE;
	if ((mask & TERN_QP_CUR_STATE) && attr.cur_state != static_cast<uint8_t>(state_))
		return TERN_AQ_BAD_STATE;
	if (!values_valid(mask, attr))
		return TERN_AQ_BAD_FIELD;
	if ((mask & TERN_QP_AV) && (attr.sgid_index >= card_.gids.size() ||
	                            card_.gids[attr.sgid_index].type == TERN_GID_NONE))
		return TERN_AQ_BAD_FIELD;
	return TERN_AQ_OK;
}

tern_hw_aq_status RcQp::modify(uint32_t mask, const tern_hw_qp_attr &attr)
{
	const auto status = check(mask, attr);
	if (status != TERN_AQ_OK)
		return status;
	/* Asked for anew with each SQD. */
	if (mask & TERN_QP_STATE)
		attr_.en_sqd_async_notify = 0;
	apply(mask, attr);
	if (mask & TERN_QP_STATE)
		enter(static_cast<tern_hw_qp_state>(attr.state));
	return TERN_AQ_OK;
}

void RcQp::apply(uint32_t mask, const tern_hw_qp_attr &attr)
{
	const auto take = [&](uint32_t bit, auto member) {
		if (mask & bit)
			attr_.*member = attr.*member;
	};
	take(TERN_QP_ACCESS_FLAGS, &tern_hw_qp_attr::access);
	take(TERN_QP_PKEY_INDEX, &tern_hw_qp_attr::pkey_index);
	take(TERN_QP_PORT, &tern_hw_qp_attr::port);
	take(TERN_QP_PATH_MTU, &tern_hw_qp_attr::path_mtu);
	take(TERN_QP_TIMEOUT, &tern_hw_qp_attr::timeout);
	take(TERN_QP_RETRY_CNT, &tern_hw_qp_attr::retry_cnt);
	take(TERN_QP_RNR_RETRY, &tern_hw_qp_attr::rnr_retry);
	take(TERN_QP_MIN_RNR_TIMER, &tern_hw_qp_attr::min_rnr_timer);
	take(TERN_QP_MAX_QP_RD_ATOMIC, &tern_hw_qp_attr::max_rd_atomic);
	take(TERN_QP_MAX_DEST_RD_ATOMIC, &tern_hw_qp_attr::max_dest_rd_atomic);
	take(TERN_QP_RQ_PSN, &tern_hw_qp_attr::rq_psn);
	take(TERN_QP_SQ_PSN, &tern_hw_qp_attr::sq_psn);
	take(TERN_QP_DEST_QPN, &tern_hw_qp_attr::dest_qpn);
	take(TERN_QP_EN_SQD_ASYNC_NOTIFY, &tern_hw_qp_attr::en_sqd_async_notify);
	if (mask & TERN_QP_PATH_MTU)
		mtu_ = mtu_bytes(attr.path_mtu);
	if (mask & TERN_QP_AV)
		apply_path(attr);
}

void RcQp::apply_path(const tern_hw_qp_attr &attr)
{
	attr_.sgid_index = attr.sgid_index;
	std::ranges::copy(attr.dgid, attr_.dgid);
	std::ranges::copy(attr.dmac, attr_.dmac);
	attr_.traffic_class = attr.traffic_class;
	attr_.hop_limit = attr.hop_limit;
	attr_.flow_label = attr.flow_label;
	attr_.udp_sport = attr.udp_sport;
	attr_.sl = attr.sl;

	const GidEntry &source = card_.gids[attr.sgid_index];
	AddressVector av;
	av.roce_v2 = source.type == TERN_GID_ROCE_V2;
	av.smac = card_.port.mac;
	std::ranges::copy(attr.dmac, av.dmac.begin());
	av.vlan = source.vlan;
	av.sgid = source.gid;
	std::ranges::copy(attr.dgid, av.dgid.bytes.begin());
	av.traffic_class = attr.traffic_class;
	av.hop_limit = attr.hop_limit;
	av.sl = attr.sl;
	av.flow_label = attr.flow_label.get();
	av.udp_sport = attr.udp_sport.get();
	path_ = PathHeader(av);
	local_gid_ = av.sgid;
	remote_gid_ = av.dgid;
	vlan_ = av.vlan;
}

void RcQp::enter(tern_hw_qp_state to)
{
	const auto from = state_;
	switch (to) {
	case TERN_QPS_RESET:
		reset();
		return;
	case TERN_QPS_ERR:
		responder_.abandon();
		enter_error();
		return;
	case TERN_QPS_RTR:
		if (from == TERN_QPS_INIT)
			responder_.reset(Psn(attr_.rq_psn.get()));
		break;
	case TERN_QPS_RTS:
		if (from == TERN_QPS_RTR)
			requester_.reset(Psn(attr_.sq_psn.get()));
		draining_ = false;
		break;
	case TERN_QPS_SQD:
		draining_ = from == TERN_QPS_RTS || draining_;
		break;
	default:
		break;
	}
	state_ = to;
	check_drained();
	if (to == TERN_QPS_RTS)
		card_.port.activate(*this);
}

void RcQp::reset()
{
	state_ = TERN_QPS_RESET;
	attr_ = {};
	established_ = false;
	draining_ = false;
	requester_.reset(Psn());
	responder_.reset(Psn());
	reset_queues();
}

void RcQp::query(tern_hw_qp_attr &attr) const
{
	attr = attr_;
	attr.state = static_cast<uint8_t>(state_);
	attr.cur_state = attr.state;
	attr.sq_draining = draining_;
	/* The PSNs as they are now, as mlx5 tells them. */
	if (receives())
		attr.rq_psn = responder_.expected_psn().value();
	if (sends())
		attr.sq_psn = requester_.next_psn().value();
}

} // namespace tern
