// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/recv_claims.h"

#include "qemu/rnic/transport/data_path.h"
#include "qemu/rnic/transport/page_waits.h"
#include "qemu/rnic/transport/segmentation.h"

namespace tern {

using namespace hw;

tern_hw_cqe_status status_of(RecvResult result)
{
	switch (result) {
	case RecvResult::InvalidWqe:
		return TERN_WC_LOC_QP_OP_ERR;
	case RecvResult::TooLong:
		return TERN_WC_LOC_LEN_ERR;
	case RecvResult::BadBuffer:
		return TERN_WC_LOC_PROT_ERR;
	default:
		return TERN_WC_SUCCESS;
	}
}

RecvResult RecvClaims::claim(uint32_t srqn)
{
	if (claim_)
		return RecvResult::Done;
	uint32_t index = rq_.head();
	if (srqn) {
		const auto taken = data_.take_shared(srqn, index);
		if (taken != SharedRecvQueue::Take::Done)
			return taken == SharedRecvQueue::Take::Empty ? RecvResult::Empty
			                                             : RecvResult::QueueFailed;
	} else {
		if (!rq_.has_wqe(data_.memory.host()))
			return rq_.broken() ? RecvResult::QueueFailed : RecvResult::Empty;
		rq_.advance();
	}
	claim_ = Claim{srqn, index};
	return RecvResult::Done;
}

RecvResult RecvClaims::load()
{
	RecvWqe &wqe = data_.scratch_recv;
	const auto [srqn, index] = std::pair(claim_->srqn, claim_->index);
	if (entry_claimed()) {
		wqe.sge[0] = data_.srqs.find(srqn)->tags()->list().buffer(index);
		wqe.sge_count = 1;
		wqe.length = wqe.sge[0].length;
		return RecvResult::Done;
	}
	const Fetch fetch = srqn ? data_.srqs.find(srqn)->fetch(data_.memory, index, wqe)
	                         : rq_.fetch(data_.memory, index, wqe);
	if (fetch == Fetch::Ok)
		return RecvResult::Done;
	if (fetch == Fetch::Invalid)
		return RecvResult::InvalidWqe;
	if (srqn)
		data_.fail_srq(srqn);
	return RecvResult::QueueFailed;
}

RecvResult RecvClaims::place(uint64_t offset, const Payload &data)
{
	const RecvResult loaded = load();
	return loaded == RecvResult::Done ? place_more(offset, data) : loaded;
}

RecvResult RecvClaims::place_more(uint64_t offset, const Payload &data)
{
	const RecvWqe &wqe = data_.scratch_recv;
	if (!send_fits(offset, data.size(), wqe.length))
		return RecvResult::TooLong;
	const Access access = data_.memory.scatter(wqe.sges(), domain(claim_->srqn), offset, data);
	if (access == Access::NeedPages) {
		/* The side may wait already for other pages: those of a WRITE, or of a WQE that
		 * has completed since. The host's answer does not concern this WQE then. */
		claim_->needs_pages |= !page_waits_.waits(QpSide::Responder);
		return RecvResult::NeedPages;
	}
	return access == Access::Ok ? RecvResult::Done : RecvResult::BadBuffer;
}

uint32_t RecvClaims::end(tern_hw_cqe &cqe)
{
	const Claim claim = *claim_;
	claim_.reset();
	return end(claim, cqe);
}

uint32_t RecvClaims::end_entry(uint32_t entry, const TagReport &report, tern_hw_cqe &cqe) const
{
	return end({.srqn = config_.srqn, .index = entry, .report = report}, cqe);
}

uint32_t RecvClaims::end(const Claim &claim, tern_hw_cqe &cqe) const
{
	const TagReport &report = claim.report;
	cqe.wqe_index = claim.index;
	cqe.srqn = claim.srqn;
	if (report.opcode != TERN_CQE_RECV)
		cqe.opcode = report.opcode;
	if (cqe.status == TERN_WC_SUCCESS)
		cqe.status = static_cast<uint8_t>(report.status);
	cqe.flags |= report.flags;
	cqe.tag = report.tag;
	cqe.app_ctx = report.app_ctx;
	SharedRecvQueue *srq = data_.srqs.find(claim.srqn);
	if (report.flags & TERN_CQE_TAG_DATA)
		srq->tags()->list().release(claim.index);
	/* An SRQ of XRC or with tag matching has its own CQ. */
	return srq && srq->config().cqn ? srq->config().cqn : config_.recv_cqn;
}

std::optional<uint32_t> RecvClaims::credits()
{
	if (config_.srqn || config_.type == TERN_QPT_XRC_TGT)
		return std::nullopt;
	return rq_.posted(data_.memory.host()) + (claim_ ? 1 : 0);
}

/* The buffers of an SRQ belong to the SRQ's protection domain (IBA 10.2.9). */
Memory::Domain RecvClaims::domain(uint32_t srqn) const
{
	Memory::Domain whose = config_.domain();
	if (srqn)
		whose.pdn = data_.srqs.find(srqn)->config().pdn;
	return whose;
}

/* If a WRITE finds another page absent, the claimed WQE must not complete with an error. */
void RecvClaims::resumed()
{
	if (claim_)
		claim_->needs_pages = false;
}

TagList *RecvClaims::tags() const
{
	SharedRecvQueue *srq = data_.srqs.find(config_.srqn);
	return srq && srq->tags() && !srq->failed() ? &srq->tags()->list() : nullptr;
}

void RecvClaims::claim_entry(uint32_t entry, const TagReport &report, size_t header)
{
	claim_ = Claim{.srqn = config_.srqn, .index = entry, .report = report, .header = header};
}

void RecvClaims::forget_srq(uint32_t srqn)
{
	if (claim_ && claim_->srqn == srqn)
		claim_.reset();
}

void RecvClaims::reset()
{
	rq_.reset();
	claim_.reset();
}

} // namespace tern
