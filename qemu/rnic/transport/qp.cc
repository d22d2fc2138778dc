// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/qp.h"

#include <algorithm>
#include <cstring>

namespace tern {

using namespace hw;

namespace {

/*
 * In ERR, posts to the receive queue ring no doorbell but must be flushed: the record is read
 * periodically, less often while nothing is posted.
 */
constexpr uint64_t kFlushIntervalMin = 1'000'000;
constexpr uint64_t kFlushIntervalMax = 64'000'000;

/* What a send WQE is counted as (TERN_COMP_*); 0: as nothing. */
uint32_t operation_of(uint8_t opcode)
{
	switch (opcode) {
	case TERN_OP_SEND:
	case TERN_OP_SEND_IMM:
	case TERN_OP_SEND_INV:
		return TERN_COMP_SEND;
	case TERN_OP_WRITE:
	case TERN_OP_WRITE_IMM:
		return TERN_COMP_WRITE;
	case TERN_OP_READ:
		return TERN_COMP_READ;
	default:
		return 0;
	}
}

} // namespace

Qp::Qp(DataPath &data, const QpConfig &config, SendQueue sq, RecvQueue rq)
        : data_(data), config_(config), sq_(std::move(sq)),
          recv_(data_, config_, page_waits_, std::move(rq))
{
}

void Qp::begin(uint32_t qpn)
{
	number = qpn;
	sq_.reset(data_.memory.host());
}

bool Qp::attach(CompletionCounter &counter, uint32_t ops)
{
	if (counts(ops))
		return false;
	if (!counters_)
		counters_ = std::make_unique<AttachedCounters>();
	counters_->attach(counter, ops);
	return true;
}

void Qp::detach_counters()
{
	if (counters_)
		counters_->detach_all();
}

void Qp::count_send(uint8_t opcode, bool success, uint64_t bytes)
{
	if (counters_)
		count(operation_of(opcode), success, bytes);
}

void Qp::ring(uint32_t pi)
{
	if (!sq_.posted(pi)) {
		fatal();
		return;
	}
	if (flushes_sends())
		data_.chores.add(*this);
	else
		data_.scheduler.activate(*this);
}

void Qp::expire(uint64_t now)
{
	const Stats::Scope scope(data_.stats, stats_set_);
	if (state_ == TERN_QPS_ERR)
		data_.chores.add(*this);
	else
		on_timer(now);
	if (resume_at_ <= now) {
		resume_at_ = UINT64_MAX;
		data_.scheduler.activate(*this);
	} else if (resume_at_ != UINT64_MAX) {
		set_timer(resume_at_);
	}
}

void Qp::set_rate_limit(const tern_hw_rate_limit &limit)
{
	rates_.set_limit(limit);
	resume_at_ = UINT64_MAX;
	data_.scheduler.activate(*this);
}

/* Requests and responses may wait for different times. */
bool Qp::wait_for_rate(Side side)
{
	const uint64_t now = data_.ports.clock.now();
	const uint64_t next = rates_.next(side, now);
	if (next <= now)
		return false;
	resume_at_ = std::min(resume_at_, next);
	set_timer(resume_at_);
	return true;
}

void Qp::inject_rate(uint32_t rate)
{
	rates_.inject(rate);
	resume_at_ = UINT64_MAX;
	data_.scheduler.activate(*this);
}

bool Qp::inject_error()
{
	if (state_ == TERN_QPS_ERR || state_ == TERN_QPS_RESET)
		return false;
	fatal();
	return true;
}

void Qp::wait_for_pages(Side side)
{
	const PageFault &fault = data_.memory.fault();
	if (state_ == TERN_QPS_ERR || !page_waits_.add(side, fault))
		return;
	data_.ports.observer.page_fault(number, fault.key, fault.addr, fault.length);
	report_faults();
}

void Qp::report_faults()
{
	if (!page_waits_.take_event())
		return;
	data_.stats.add(TERN_STAT_PAGE_FAULTS);
	data_.raise_event(TERN_EVENT_PAGE_FAULT, number);
}

void Qp::resume(tern_hw_resume requester, tern_hw_resume responder)
{
	const Stats::Scope scope(data_.stats, stats_set_);
	page_waits_.resumed();
	if (page_waits_.end(Side::Requester, requester))
		resume_requester(requester == TERN_RESUME_RETRY);
	if (page_waits_.end(Side::Responder, responder)) {
		if (responder == TERN_RESUME_RETRY)
			recv_.resumed();
		resume_responder(responder == TERN_RESUME_RETRY);
	}
	report_faults();
}

void Qp::fatal()
{
	if (state_ == TERN_QPS_ERR || state_ == TERN_QPS_RESET)
		return;
	data_.raise_event(config_.is_wq ? TERN_EVENT_WQ_FATAL : TERN_EVENT_QP_FATAL, number);
	enter_error();
}

bool Qp::send_posted()
{
	HostMemory &host = data_.memory.host();
	if (sq_.empty())
		sq_.reload(host);
	const bool posted = !sq_.empty() || !sq_.sleep(host);
	if (!posted && sq_.broken())
		fatal();
	return posted;
}

Access Qp::gather_send(const SendWqe &wqe, uint64_t offset, std::span<std::byte> to)
{
	if (!(wqe.flags & TERN_WQE_INLINE))
		return data_.memory.gather(wqe.sges(), config_.domain(), offset, to);
	std::memcpy(to.data(), wqe.inline_data().data() + offset, to.size());
	return Access::Ok;
}

bool Qp::locate_send(const SendWqe &wqe, uint64_t offset, size_t size, HostRanges &ranges)
{
	return !(wqe.flags & TERN_WQE_INLINE) &&
	       data_.memory.locate(wqe.sges(), config_.domain(), offset, size, ranges);
}

tern_hw_cqe_status Qp::execute_local(const SendWqe &wqe)
{
	Memory &memory = data_.memory;
	switch (wqe.opcode) {
	case TERN_OP_LOCAL_INV:
		if (!memory.may_invalidate(wqe.imm, target(), Memory::Invalidator::Host))
			return TERN_WC_MW_BIND_ERR;
		data_.out.recall(Recall::of_key(wqe.imm));
		memory.invalidate(wqe.imm);
		return TERN_WC_SUCCESS;
	case TERN_OP_BIND_MW:
		if (!memory.may_bind(wqe.bind, target()))
			return TERN_WC_MW_BIND_ERR;
		/* The window may have been bound to another region. */
		data_.out.recall(Recall::of_key(wqe.bind.rkey));
		memory.bind(wqe.bind, target());
		return TERN_WC_SUCCESS;
	default:
		/* The request contains IOVAs, which only kernel users may set. */
		if (!config_.domain().kernel)
			return TERN_WC_LOC_QP_OP_ERR;
		return memory.register_fast(wqe.reg, config_.pdn) ? TERN_WC_SUCCESS
		                                                  : TERN_WC_MW_BIND_ERR;
	}
}

void Qp::complete_recv(tern_hw_cqe cqe, bool solicited)
{
	const uint32_t cqn = recv_.end(cqe);
	count(TERN_COMP_RECV, cqe.status == TERN_WC_SUCCESS, cqe.byte_len.get());
	complete(cqn, cqe, solicited);
}

void Qp::complete_recv_error(bool solicited, tern_hw_cqe_status status)
{
	tern_hw_cqe cqe{};
	cqe.opcode = TERN_CQE_RECV;
	cqe.status = static_cast<uint8_t>(status);
	data_.stats.add(status == TERN_WC_WR_FLUSH_ERR ? TERN_STAT_RESP_CQE_FLUSHED
	                                               : TERN_STAT_RESP_CQE_ERRORS);
	complete_recv(cqe, solicited);
}

void Qp::complete_tag(uint32_t entry, const TagReport &report, uint32_t byte_len, bool solicited)
{
	tern_hw_cqe cqe{};
	cqe.byte_len = byte_len;
	complete(recv_.end_entry(entry, report, cqe), cqe, solicited);
}

void Qp::forget_tables()
{
	sq_.pages().forget(data_.memory.tables());
	recv_.queue().pages().forget(data_.memory.tables());
}

void Qp::release_tags()
{
	if (recv_.entry_claimed())
		complete_recv_error(false, TERN_WC_WR_FLUSH_ERR);
}

void Qp::start_flush()
{
	flush_interval_ = 0;
	data_.chores.add(*this);
}

void Qp::start_send_flush()
{
	sq_.reload(data_.memory.host());
	failed_sends_end_ = sq_.end();
	data_.chores.add(*this);
}

bool Qp::work(unsigned &budget)
{
	const Stats::Scope scope(data_.stats, stats_set_);
	if (!flushes_sends())
		return false;
	if (!flush_requests(budget) || !flush_send(budget))
		return true;
	if (state_ != TERN_QPS_ERR)
		return false;
	if (!flush_recv(budget))
		return true;
	flush_interval_ = std::clamp(2 * flush_interval_, kFlushIntervalMin, kFlushIntervalMax);
	set_timer(data_.ports.clock.now() + flush_interval_);
	return false;
}

/* Unclaimed WQEs of an SRQ remain for other QPs. */
bool Qp::flush_recv(unsigned &budget)
{
	while (recv_.claim(0) == RecvResult::Done) {
		if (!budget)
			return false;
		budget--;
		complete_recv_error(false, TERN_WC_WR_FLUSH_ERR);
		flush_interval_ = 0;
	}
	if (config_.srqn && !last_wqe_reported_) {
		data_.raise_event(TERN_EVENT_LAST_WQE, number);
		last_wqe_reported_ = true;
	}
	return true;
}

void Qp::reset_queues()
{
	sq_.reset(data_.memory.host());
	recv_.reset();
	rates_ = {};
	resume_at_ = UINT64_MAX;
	last_wqe_reported_ = false;
	failure_ = TERN_WC_SUCCESS;
	page_waits_.forget();
}

bool Qp::flush_send(unsigned &budget)
{
	/* SendQueue::sleep() requests a doorbell for later posts. */
	while (!sq_.empty() || !sq_.sleep(data_.memory.host())) {
		if (!budget)
			return false;
		budget--;
		flush_next_send();
	}
	return true;
}

bool Qp::flush_failed_sends(unsigned &budget)
{
	const Stats::Scope scope(data_.stats, stats_set_);
	while (!sq_.empty() && static_cast<int32_t>(failed_sends_end_ - sq_.head()) > 0) {
		if (!budget)
			return false;
		budget--;
		flush_next_send();
	}
	return true;
}

void Qp::flush_next_send()
{
	SendWqe &wqe = data_.scratch_send;
	const uint32_t index = sq_.head();
	if (sq_.fetch(data_.memory, index, wqe) == Fetch::Fault || wqe.blocks == 0) {
		sq_.skip_all();
		return;
	}
	sq_.advance(wqe.blocks);
	data_.stats.add(TERN_STAT_REQ_CQE_FLUSHED);
	complete_send(index, wqe.opcode, TERN_WC_WR_FLUSH_ERR, 0);
}

void Qp::complete_send(uint32_t wqe_index, uint8_t opcode, tern_hw_cqe_status status,
                       uint32_t byte_len)
{
	count_send(opcode, status == TERN_WC_SUCCESS, byte_len);
	tern_hw_cqe cqe{};
	cqe.wqe_index = wqe_index;
	cqe.opcode = opcode;
	cqe.status = static_cast<uint8_t>(status);
	cqe.byte_len = byte_len;
	complete(config_.send_cqn, cqe, false);
}

void Qp::complete(uint32_t cqn, tern_hw_cqe &cqe, bool solicited)
{
	cqe.qpn = number;
	cqe.flags |= config_.is_wq ? TERN_CQE_WQ : 0;
	cqe.timestamp = data_.ports.clock.now();
	if (cqe.status && cqe.status != TERN_WC_WR_FLUSH_ERR && !failure_)
		failure_ = cqe.status;
	/* In ERR the failure happened during the flush, and fatal() has no effect. */
	if (!data_.complete(cqn, cqe, solicited))
		fatal();
}

} // namespace tern
