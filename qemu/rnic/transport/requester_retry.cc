// SPDX-License-Identifier: GPL-2.0-or-later
/* When the requester sends again: what was lost, what waited for pages, and its timers. */
#include <algorithm>

#include "qemu/rnic/card.h"
#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/requester.h"

namespace tern {

using namespace hw;

namespace {

/* By which the ACK timer exceeds its value at most, in ns. */
constexpr uint64_t kMaxStall = 250'000'000;

} // namespace

/* A later response arrived before an earlier one (IBA 9.7.5.2.5): ask again, once for each batch in
 * flight. */
void Requester::implied_nak()
{
	/* After RNR, too, we have gone back already. */
	if (nak_implied_ || rnr_until_)
		return;
	qp_.card_.stats.add(TERN_STAT_REQ_IMPLIED_NAK);
	if (!spend_retry())
		return;
	seek(una_);
	nak_implied_ = true;
}

bool Requester::spend_retry()
{
	if (!retries_left_) {
		qp_.card_.stats.add(TERN_STAT_REQ_RETRY_EXCEEDED);
		fail(TERN_WC_RETRY_EXC_ERR);
		return false;
	}
	retries_left_--;
	return true;
}

/* The next packet to send is that of @psn, in una_ .. end_. */
void Requester::seek(Psn psn)
{
	next_psn_ = psn;
	cursor_ = 0;
	while (cursor_ < requests_.size() && next_psn_ - requests_[cursor_].end() >= 0 &&
	       requests_[cursor_].status == TERN_WC_SUCCESS)
		cursor_++;
}

/* The wait is this host's, so it costs no retry. */
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
		seek(una_);
		/* What still comes of the responses that followed means nothing. */
		nak_implied_ = true;
	}
	if (!ok)
		fail_at(psn);
	if (!qp_.sends())
		return;
	arm_timer();
	qp_.card_.port.activate(qp_);
}

/* The request of @psn fails as soon as all before it have ended. */
void Requester::fail_at(Psn psn)
{
	for (size_t i = 0; i < requests_.size(); i++) {
		Request &r = requests_[i];
		if (psn - r.first >= 0 && psn - r.end() < 0 && r.status == TERN_WC_SUCCESS)
			r.status = TERN_WC_LOC_PROT_ERR;
	}
	settle_front();
}

void Requester::arm_timer()
{
	timeout_at_ = UINT64_MAX;
	if (una_ == sent_ || !qp_.attr_.timeout || page_wait_)
		return;
	/* The specification allows one to four times the value (IBA 9.7.6.1.3). A short one is
	 * stretched, because a peer in software can be kept from its processor. */
	const uint64_t value = 4096ull << qp_.attr_.timeout;
	timeout_at_ = qp_.card_.ports.clock.now() + value + std::min(3 * value, kMaxStall);
	qp_.card_.set_timer(qp_, timeout_at_);
}

void Requester::on_timer(uint64_t now)
{
	if (rnr_until_ && now >= rnr_until_) {
		rnr_until_ = 0;
		qp_.card_.port.activate(qp_);
	}
	if (now >= timeout_at_) {
		qp_.card_.stats.add(TERN_STAT_REQ_TIMEOUTS);
		timeout_at_ = UINT64_MAX;
		if (!spend_retry())
			return;
		nak_implied_ = false;
		seek(una_);
		arm_timer();
		qp_.card_.port.activate(qp_);
	}
	if (rnr_until_)
		qp_.card_.set_timer(qp_, rnr_until_);
	if (timeout_at_ != UINT64_MAX)
		qp_.card_.set_timer(qp_, timeout_at_);
}

} // namespace tern
