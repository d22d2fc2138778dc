// SPDX-License-Identifier: GPL-2.0-or-later
/* What a QP of any service does about pages on demand that are absent. */
#include "qemu/rnic/card.h"
#include "qemu/rnic/transport/qp.h"

namespace tern {

using namespace hw;

namespace {

tern_hw_fault to_hw(const std::optional<PageFault> &fault)
{
	tern_hw_fault out{};
	if (fault) {
		out.addr = fault->addr;
		out.length = fault->length;
		out.key = fault->key;
		out.write = fault->write;
	}
	return out;
}

} // namespace

/* A side that waits already keeps its first fault: it meets the next one when it goes on. */
void Qp::wait_for_pages(Side side)
{
	auto &fault = faults_[static_cast<size_t>(side)];
	if (fault || state_ == TERN_QPS_ERR)
		return;
	fault = card_.memory.fault();
	tell_faults();
}

/* One event at a time: the host asks for both sides, and answers for both. */
void Qp::tell_faults()
{
	if (faults_told_ || (!faults_[0] && !faults_[1]))
		return;
	faults_told_ = true;
	card_.stats.add(TERN_STAT_PAGE_FAULTS);
	card_.raise_event(TERN_EVENT_PAGE_FAULT, number);
}

void Qp::query_faults(tern_hw_faults &faults) const
{
	faults.requester = to_hw(faults_[static_cast<size_t>(Side::Requester)]);
	faults.responder = to_hw(faults_[static_cast<size_t>(Side::Responder)]);
}

bool Qp::end_fault(Side side, tern_hw_resume how)
{
	auto &fault = faults_[static_cast<size_t>(side)];
	if (!fault || how == TERN_RESUME_NONE)
		return false;
	fault.reset();
	return true;
}

void Qp::resume(tern_hw_resume requester, tern_hw_resume responder)
{
	faults_told_ = false;
	if (end_fault(Side::Requester, requester))
		resume_requester(requester == TERN_RESUME_RETRY);
	if (end_fault(Side::Responder, responder))
		resume_responder(responder == TERN_RESUME_RETRY);
	tell_faults();
}

void Qp::forget_faults()
{
	faults_.fill(std::nullopt);
}

} // namespace tern
