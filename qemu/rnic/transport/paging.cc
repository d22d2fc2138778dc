// SPDX-License-Identifier: GPL-2.0-or-later
/* Page faults of a QP of any service. */
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

/* A side that already waits keeps its first fault; it meets the next one after it resumes. */
void Qp::wait_for_pages(Side side)
{
	auto &fault = faults_[static_cast<size_t>(side)];
	if (fault || state_ == TERN_QPS_ERR)
		return;
	fault = data_.memory.fault();
	data_.ports.observer.page_fault(number, fault->key, fault->addr, fault->length);
	report_faults();
}

/* One event for both sides: the host queries both and resumes both. */
void Qp::report_faults()
{
	if (fault_reported_ || (!faults_[0] && !faults_[1]))
		return;
	fault_reported_ = true;
	data_.stats.add(TERN_STAT_PAGE_FAULTS);
	data_.raise_event(TERN_EVENT_PAGE_FAULT, number);
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
	const Stats::Scope scope(data_.stats, stats_set_);
	fault_reported_ = false;
	if (end_fault(Side::Requester, requester))
		resume_requester(requester == TERN_RESUME_RETRY);
	if (end_fault(Side::Responder, responder))
		resume_responder(responder == TERN_RESUME_RETRY);
	report_faults();
}

void Qp::forget_faults()
{
	faults_.fill(std::nullopt);
}

} // namespace tern
