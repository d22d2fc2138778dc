// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/qp.h"

#include <algorithm>
#include <cstring>

namespace tern {

using namespace hw;

Qp::Qp(DataPath &data, const QpConfig &config, SendQueue sq, RecvQueue rq)
        : data_(data), config_(config), sq_(std::move(sq)), rq_(std::move(rq))
{
	sq_.reset(data_.memory.host());
}

void Qp::ring(uint32_t pi)
{
	if (!sq_.posted(pi)) {
		fatal();
		return;
	}
	data_.scheduler.activate(*this);
}

void Qp::expire(uint64_t now)
{
	on_timer(now);
	if (!pacing_)
		return;
	if (pacer_.next() <= now) {
		pacing_ = false;
		data_.scheduler.activate(*this);
	} else {
		set_timer(pacer_.next());
	}
}

void Qp::set_rate_limit(const tern_hw_rate_limit &limit)
{
	pacer_.set(limit);
	pacing_ = false;
	data_.scheduler.activate(*this);
}

bool Qp::wait_for_rate()
{
	if (pacer_.next() <= data_.ports.clock.now())
		return false;
	pacing_ = true;
	set_timer(pacer_.next());
	return true;
}

bool Qp::paced_after(size_t size) const
{
	return pacer_.limited() && pacer_.exhausted_by(data_.ports.clock.now(), size);
}

void Qp::spend_rate(size_t size)
{
	pacer_.sent(data_.ports.clock.now(), size);
}

void Qp::fatal()
{
	if (state_ == TERN_QPS_ERR || state_ == TERN_QPS_RESET)
		return;
	data_.raise_event(config_.is_wq ? TERN_EVENT_WQ_FATAL : TERN_EVENT_QP_FATAL, number);
	enter_error();
}

Memory::Domain Qp::domain() const
{
	return {config_.pdn, config_.db_page == TERN_DB_PAGE_KERNEL};
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
		return data_.memory.gather(wqe.sges(), domain(), offset, to);
	std::memcpy(to.data(), wqe.inline_data().data() + offset, to.size());
	return Access::Ok;
}

bool Qp::locate_send(const SendWqe &wqe, uint64_t offset, size_t size, HostRanges &ranges)
{
	return !(wqe.flags & TERN_WQE_INLINE) &&
	       data_.memory.locate(wqe.sges(), domain(), offset, size, ranges);
}

tern_hw_cqe_status Qp::execute_local(const SendWqe &wqe)
{
	bool done = false;
	switch (wqe.opcode) {
	case TERN_OP_LOCAL_INV:
		data_.out.recall(Recall::of_key(wqe.imm));
		done = data_.memory.invalidate(wqe.imm, target(), Memory::Invalidator::Host);
		break;
	case TERN_OP_BIND_MW:
		/* The window may have been bound to another region. */
		data_.out.recall(Recall::of_key(wqe.bind.rkey));
		done = data_.memory.bind(wqe.bind, target());
		bound_windows_ |= done;
		break;
	default:
		/* The request contains IOVAs, which only kernel users may set. */
		if (!domain().kernel)
			return TERN_WC_LOC_QP_OP_ERR;
		done = data_.memory.register_fast(wqe.reg, config_.pdn);
		break;
	}
	return done ? TERN_WC_SUCCESS : TERN_WC_MW_BIND_ERR;
}

Qp::Claim Qp::claim_recv(uint32_t srqn)
{
	if (claimed_)
		return Claim::Done;
	if (srqn)
		return claim_shared(srqn);
	if (!rq_.has_wqe(data_.memory.host())) {
		if (!rq_.broken())
			return Claim::Empty;
		fatal();
		return Claim::Failed;
	}
	claimed_ = Claimed{0, rq_.head()};
	rq_.advance();
	return Claim::Done;
}

Qp::Claim Qp::claim_shared(uint32_t srqn)
{
	uint32_t slot;
	switch (data_.take_shared(srqn, slot)) {
	case SharedRecvQueue::Take::Done:
		claimed_ = Claimed{srqn, slot};
		return Claim::Done;
	case SharedRecvQueue::Take::Empty:
		return Claim::Empty;
	default:
		fatal();
		return Claim::Failed;
	}
}

Fetch Qp::load_recv(RecvWqe &wqe)
{
	const uint32_t srqn = claimed_->srqn;
	if (claimed_->report.listed()) {
		const Sge &buffer = data_.srqs.find(srqn)->tags()->list().buffer(claimed_->index);
		wqe.sge[0] = buffer;
		wqe.sge_count = 1;
		wqe.length = buffer.length;
		return Fetch::Ok;
	}
	const Fetch fetch = srqn ? data_.srqs.find(srqn)->fetch(data_.memory, claimed_->index, wqe)
	                         : rq_.fetch(data_.memory, claimed_->index, wqe);
	if (fetch == Fetch::Fault) {
		if (srqn)
			data_.fail_srq(srqn);
		fatal();
	}
	return fetch;
}

/* The buffers of an SRQ belong to the SRQ's protection domain (IBA 10.2.9). */
Memory::Domain Qp::recv_domain(uint32_t srqn) const
{
	Memory::Domain whose = domain();
	if (srqn)
		whose.pdn = data_.srqs.find(srqn)->config().pdn;
	return whose;
}

Access Qp::scatter_recv(const RecvWqe &wqe, uint64_t offset, const Payload &data)
{
	const Access access =
	        data_.memory.scatter(wqe.sges(), recv_domain(claimed_->srqn), offset, data);
	claimed_->needs_pages = access == Access::NeedPages;
	return access;
}

void Qp::complete_recv(tern_hw_cqe cqe, bool solicited)
{
	const Claimed claim = *claimed_;
	claimed_.reset();
	cqe.wqe_index = claim.index;
	cqe.srqn = claim.srqn;
	claim.report.add_to(cqe);
	/* An SRQ of XRC or with tag matching has its own CQ. */
	SharedRecvQueue *srq = data_.srqs.find(claim.srqn);
	if (claim.report.listed())
		srq->tags()->list().release(claim.index);
	complete(srq && srq->config().cqn ? srq->config().cqn : config_.recv_cqn, cqe, solicited);
}

void Qp::complete_recv_error(bool solicited, tern_hw_cqe_status status)
{
	tern_hw_cqe cqe{};
	cqe.opcode = TERN_CQE_RECV;
	cqe.status = static_cast<uint8_t>(status);
	data_.stats.add(TERN_STAT_RESP_CQE_ERRORS);
	complete_recv(cqe, solicited);
}

std::optional<uint32_t> Qp::recv_credits()
{
	if (config_.srqn || config_.type == TERN_QPT_XRC_TGT)
		return std::nullopt;
	return rq_.posted(data_.memory.host()) + (claimed_ ? 1 : 0);
}

void Qp::forget_srq(uint32_t srqn)
{
	if (claimed_ && claimed_->srqn == srqn)
		claimed_.reset();
}

void Qp::flush_claimed()
{
	tern_hw_cqe cqe{};
	cqe.opcode = TERN_CQE_RECV;
	cqe.status = TERN_WC_WR_FLUSH_ERR;
	data_.stats.add(TERN_STAT_RESP_CQE_FLUSHED);
	complete_recv(cqe, false);
}

/* Unclaimed WQEs of an SRQ remain for other QPs. */
void Qp::forget_tables()
{
	sq_.pages().forget(data_.memory.tables());
	rq_.pages().forget(data_.memory.tables());
}

bool Qp::flush_recv()
{
	const bool any = claimed_.has_value();
	if (claimed_)
		flush_claimed();
	if (config_.srqn) {
		if (!last_wqe_reported_)
			data_.raise_event(TERN_EVENT_LAST_WQE, number);
		last_wqe_reported_ = true;
		return any;
	}
	const uint32_t count = rq_.posted(data_.memory.host());
	for (uint32_t i = 0; i < count; i++) {
		claim_recv();
		flush_claimed();
	}
	return any || count;
}

void Qp::reset_queues()
{
	sq_.reset(data_.memory.host());
	rq_.reset();
	claimed_.reset();
	pacer_ = {};
	pacing_ = false;
	last_wqe_reported_ = false;
	forget_faults();
	release_windows();
}

void Qp::release_windows()
{
	if (bound_windows_)
		data_.memory.release_windows(number);
	bound_windows_ = false;
}

void Qp::flush_send()
{
	/* SendQueue::sleep() requests a doorbell for later posts. The loop is limited so that a
	 * host that keeps posting cannot hold the engine. */
	for (uint32_t left = sq_.blocks(); !sq_.empty() || !sq_.sleep(data_.memory.host());
	     left--) {
		if (!left) {
			data_.scheduler.activate(*this);
			return;
		}
		SendWqe &wqe = data_.scratch_send;
		if (sq_.fetch(data_.memory, sq_.head(), wqe) == Fetch::Fault || wqe.blocks == 0) {
			sq_.skip_all();
			continue;
		}
		const uint32_t index = sq_.head();
		sq_.advance(wqe.blocks);
		data_.stats.add(TERN_STAT_REQ_CQE_FLUSHED);
		complete_send(index, wqe.opcode, TERN_WC_WR_FLUSH_ERR, 0);
	}
}

void Qp::complete_send(uint32_t wqe_index, uint8_t opcode, tern_hw_cqe_status status,
                       uint32_t byte_len)
{
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
	/* In ERR the failure happened during the flush, and fatal() has no effect. */
	if (!data_.complete(cqn, cqe, solicited))
		fatal();
}

} // namespace tern
