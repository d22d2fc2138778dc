// SPDX-License-Identifier: GPL-2.0-or-later
/* The state of QPs as text. */
#include "qemu/rnic/json.h"
#include "qemu/rnic/names.h"
#include "qemu/rnic/transport/rc_qp.h"

namespace tern {

using namespace hw;

namespace {

void describe_fault(Json &to, const char *side, const tern_hw_fault &fault)
{
	if (!fault.length.get())
		return;
	to.object(side, [&] {
		to.number("key", fault.key.get());
		to.number("addr", fault.addr.get());
		to.number("length", fault.length.get());
	});
}

} // namespace

void Qp::describe(Json &to) const
{
	to.text("type", config_.is_wq ? "WQ" : qp_type_name(config_.type));
	to.text("state", qp_state_name(state_));
	to.text("failure", failure_ ? cqe_status_name(failure_) : "");
	to.number("send_cqn", config_.send_cqn);
	to.number("recv_cqn", config_.recv_cqn);
	to.number("srqn", config_.srqn);
	to.object("sq", [&] {
		to.number("blocks", sq_.blocks());
		to.number("pi", sq_.end());
		to.number("ci", sq_.head());
	});
	to.object("rq", [&] {
		to.number("entries", recv_.queue().entries());
		to.number("posted", recv_.queue().known());
		to.flag("claimed", recv_.claimed());
	});
	to.flag("scheduled", scheduled());
	to.flag("parked", parked());
	to.flag("paced", resume_at_ != UINT64_MAX);
	to.number("injected_kbps", rates_.injected());
	to.object("faults", [&] {
		tern_hw_faults faults;
		page_waits_.query(faults);
		describe_fault(to, "requester", faults.requester);
		describe_fault(to, "responder", faults.responder);
	});
	if (timer.deadline != Timer::kNone) {
		const uint64_t now = data_.ports.clock.now();
		to.number("timer_ns", timer.deadline > now ? timer.deadline - now : 0);
	}
}

void IbQp::describe(Json &to) const
{
	Qp::describe(to);
	to.number("dest_qpn", attr_.dest_qpn.get());
	to.bytes("dmac", attr_.dmac, 1);
	to.bytes("dgid", attr_.dgid, 2);
	to.number("mtu", attr_.path_mtu ? 128u << attr_.path_mtu : 0);
	to.number("timeout", attr_.timeout);
	to.number("retry_cnt", attr_.retry_cnt);
	to.number("rnr_retry", attr_.rnr_retry);
}

void RcQp::describe(Json &to) const
{
	IbQp::describe(to);
	to.object("requester", [&] { requester_.describe(to); });
	to.object("responder", [&] { responder_.describe(to); });
}

std::string_view Requester::waits_for() const
{
	if (page_wait_)
		return "pages";
	if (requests_.empty() && qp_.sq_.empty())
		return "";
	if (refused_)
		return assumed_ || has_recv_wqe(requests_[0]) ? "receive" : "credits";
	if (qp_.parked())
		return qp_.paused() ? "pause" : "room";
	if (next_psn_ != una_ || timeout_at_ != UINT64_MAX)
		return retries_left_ < qp_.attr_.retry_cnt ? "retry" : "acknowledgement";
	return qp_.rate_limited() ? "rate" : "turn";
}

void Requester::describe(Json &to) const
{
	const uint64_t now = data_.ports.clock.now();
	const auto left = [&](uint64_t deadline) { return deadline > now ? deadline - now : 0; };
	to.text("waits_for", waits_for());
	to.number("una", una_.value());
	to.number("next_psn", next_psn_.value());
	to.number("end_psn", end_.value());
	to.number("window", static_cast<uint64_t>(window_));
	to.number("requests", requests_.size());
	to.number("reads_and_atomics", data_requests_);
	to.number("retries_left", retries_left_);
	to.number("rnr_retries_left", rnr_retries_left_);
	if (timeout_at_ != UINT64_MAX)
		to.number("timeout_ns", left(timeout_at_));
	if (rnr_until_)
		to.number("rnr_ns", left(rnr_until_));
	to.number("ssn", ssn_);
	if (credits_known_)
		to.number("credit_limit_ssn", limit_ssn_);
	to.number("credits_assumed", assumed_);
}

void Responder::describe(Json &to) const
{
	to.number("expected_psn", expected_.value());
	to.number("msn", msn_);
	to.number("responses", responses_.size());
	to.flag("nak_sent", nak_sent_);
}

} // namespace tern
