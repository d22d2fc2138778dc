// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/ib_qp.h"

#include <algorithm>

namespace tern {

using namespace hw;

void IbQp::on_timer(uint64_t now)
{
	if (sends())
		on_deadline(now);
}

void IbQp::enter_error()
{
	if (state_ == TERN_QPS_ERR)
		return;
	set_state(TERN_QPS_ERR);
	draining_ = false;
	/* The host may reuse the buffers of flushed WQEs. */
	data_.out.recall(Recall::of_qp(number));
	page_waits_.forget();
	abandon_requests();
	start_flush();
	/* Queued responses are still sent. */
	data_.scheduler.activate(*this);
}

void IbQp::fail_recv(bool solicited, tern_hw_cqe_status status)
{
	complete_recv_error(solicited, status);
	enter_error();
}

bool IbQp::act_on(RecvResult result, bool solicited)
{
	if (result == RecvResult::QueueFailed)
		fatal();
	else if (result == RecvResult::NeedPages)
		wait_for_pages(Side::Responder);
	else if (const auto status = status_of(result))
		fail_recv(solicited, status);
	return result == RecvResult::Done;
}

/* A failed WRITE is not reported. */
void IbQp::resume_responder(bool ok)
{
	if (!ok && recv_.needs_pages())
		fail_recv(false, TERN_WC_LOC_PROT_ERR);
}

void IbQp::enter_send_error()
{
	if (!sends())
		return;
	set_state(TERN_QPS_SQE);
	page_waits_.forget(Side::Requester);
	draining_ = false;
	start_send_flush();
}

void IbQp::check_drained()
{
	if (state_ != TERN_QPS_SQD || !draining_ || !sender_idle())
		return;
	draining_ = false;
	if (attr_.en_sqd_async_notify)
		data_.raise_event(TERN_EVENT_SQ_DRAINED, number);
}

/* ---- MODIFY_QP ---- */

/* RoCEv2 is over IPv4 or over IPv6: a packet cannot have one address of each kind. */
CommandStatus IbQp::check_address(const tern_hw_qp_attr &attr) const
{
	const GidEntry *source = data_.gids.find(attr.sgid_index);
	if (!source)
		return bad_field(attr.sgid_index);
	Gid destination;
	std::ranges::copy(attr.dgid, destination.bytes.begin());
	const bool mixed = source->gid.is_ipv4() != destination.is_ipv4();
	return source->type == TERN_GID_ROCE_V2 && mixed ? bad_field(attr.dgid)
	                                                 : CommandStatus(TERN_AQ_OK);
}

CommandStatus IbQp::check(const tern_hw_modify_qp &cmd) const
{
	const uint32_t mask = cmd.attr_mask.get();
	const tern_hw_qp_attr &attr = cmd.attr;
	const auto status = check_attributes(config_.type, state_, mask, attr);
	if (status != TERN_AQ_OK)
		return status;
	return mask & TERN_QP_AV ? check_address(attr) : TERN_AQ_OK;
}

void IbQp::modify(const tern_hw_modify_qp &cmd)
{
	const uint32_t mask = cmd.attr_mask.get();
	const tern_hw_qp_attr &attr = cmd.attr;
	/* The event must be requested with each transition to SQD. A QP that stays in SQD keeps the
	 * request, because the event may still be due. */
	if (next_state(state_, mask, attr) != state_)
		attr_.en_sqd_async_notify = 0;
	apply(mask, attr);
	if (mask & TERN_QP_STATE)
		enter(static_cast<tern_hw_qp_state>(attr.state));
}

void IbQp::apply(uint32_t mask, const tern_hw_qp_attr &attr)
{
	take_attributes(mask, attr, attr_);
	if (mask & TERN_QP_RATE_LIMIT)
		set_rate_limit(attr.rate_limit);
}

void IbQp::enter(tern_hw_qp_state to)
{
	const auto from = state_;
	switch (to) {
	case TERN_QPS_RESET:
		reset();
		return;
	case TERN_QPS_ERR:
		end_responses();
		enter_error();
		return;
	case TERN_QPS_RTR:
		start_receiver();
		break;
	case TERN_QPS_RTS:
		if (from == TERN_QPS_RTR)
			start_sender();
		draining_ = false;
		break;
	case TERN_QPS_SQD:
		draining_ = from == TERN_QPS_RTS || draining_;
		break;
	default:
		break;
	}
	set_state(to);
	check_drained();
	if (to == TERN_QPS_RTS)
		data_.scheduler.activate(*this);
}

void IbQp::reset()
{
	end_responses();
	set_state(TERN_QPS_RESET);
	data_.out.recall(Recall::of_qp(number));
	attr_ = {};
	draining_ = false;
	release_tags();
	stop();
	reset_queues();
}

void IbQp::query(tern_hw_qp_attr &attr) const
{
	attr = attr_;
	attr.state = static_cast<uint8_t>(state_);
	attr.cur_state = attr.state;
	attr.sq_draining = draining_;
	attr.rate_limit = rate_limit();
}

} // namespace tern
