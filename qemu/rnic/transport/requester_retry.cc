// SPDX-License-Identifier: GPL-2.0-or-later
/* Retransmission by the requester: losses, page faults and timers. */
#include <algorithm>

#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/requester.h"

namespace tern {

using namespace hw;

namespace {

/* Maximum extension of the ACK timeout, ns. */
constexpr uint64_t kMaxStall = 250'000'000;

} // namespace

/* A later response arrived before an earlier one (IBA 9.7.5.2.5): go back, once per batch in
 * flight. */
void Requester::implied_nak()
{
	/* After RNR the requester has already gone back. */
	if (nak_implied_ || rnr_until_)
		return;
	data_.stats.add(TERN_STAT_REQ_IMPLIED_NAK);
	if (!consume_retry())
		return;
	go_back();
	nak_implied_ = true;
}

bool Requester::consume_retry()
{
	if (!retries_left_) {
		data_.stats.add(TERN_STAT_REQ_RETRY_EXCEEDED);
		fail(TERN_WC_RETRY_EXC_ERR);
		return false;
	}
	retries_left_--;
	data_.ports.observer.retried(qp_.number, una_.value(), retries_left_);
	return true;
}

/* The next packet to send is that of una_. */
void Requester::go_back()
{
	next_psn_ = una_;
	data_psns_ = 0;
	/* The answer to a packet sent twice may be that to the first (Karn's algorithm). */
	timed_.reset();
	cursor_ = 0;
	while (cursor_ < requests_.size() && next_psn_ - requests_[cursor_].end() >= 0 &&
	       requests_[cursor_].status == TERN_WC_SUCCESS)
		cursor_++;
}

/* This host causes the delay, so it does not count as a retry. */
void Requester::wait_for_pages(Psn psn)
{
	if (!page_wait_)
		page_wait_ = psn;
	timeout_at_ = UINT64_MAX;
	qp_.wait_for_pages(RcQp::Side::Requester);
}

void Requester::resume(bool ok)
{
	if (!page_wait_)
		return;
	loaded_.reset();
	const Psn psn = *page_wait_;
	page_wait_.reset();
	if (response_dropped_) {
		response_dropped_ = false;
		go_back();
		/* Ignore the responses that follow the dropped one. */
		nak_implied_ = true;
	}
	if (!ok)
		fail_at(psn);
	if (!qp_.sends())
		return;
	arm_timer();
	data_.scheduler.activate(qp_);
}

/* Marks the request of @psn to fail when all before it have completed. */
void Requester::fail_at(Psn psn)
{
	for (size_t i = 0; i < requests_.size(); i++) {
		Request &r = requests_[i];
		if (psn - r.first >= 0 && psn - r.end() < 0 && r.status == TERN_WC_SUCCESS)
			r.status = TERN_WC_LOC_PROT_ERR;
	}
	retire_front();
}

void Requester::arm_timer()
{
	timeout_at_ = UINT64_MAX;
	/* During a wait nothing is in flight, so no answer is due. */
	if (una_ == sent_ || !qp_.attr_.timeout || page_wait_ || rnr_until_)
		return;
	/* The specification allows one to four times the value (IBA 9.7.6.1.3). Short values are
	 * extended, because a peer in software can lose its processor for a while. */
	const uint64_t value = 4096ull << qp_.attr_.timeout;
	timeout_at_ = data_.ports.clock.now() + value + std::min(3 * value, kMaxStall);
	qp_.set_timer(timeout_at_);
}

void Requester::on_timer(uint64_t now)
{
	if (rnr_until_ && now >= rnr_until_) {
		rnr_until_ = 0;
		data_.scheduler.activate(qp_);
	}
	if (now >= timeout_at_) {
		data_.stats.add(TERN_STAT_REQ_TIMEOUTS);
		data_.ports.observer.timed_out(qp_.number, una_.value());
		timeout_at_ = UINT64_MAX;
		if (!consume_retry())
			return;
		if (data_.takes_rtts())
			qp_.rate_control().on_timeout();
		nak_implied_ = false;
		go_back();
		arm_timer();
		data_.scheduler.activate(qp_);
	}
	if (rnr_until_)
		qp_.set_timer(rnr_until_);
	if (timeout_at_ != UINT64_MAX)
		qp_.set_timer(timeout_at_);
}

} // namespace tern
