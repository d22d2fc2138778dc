// SPDX-License-Identifier: GPL-2.0-or-later
/* A QP's use of the tag list of its SRQ. */
#include "qemu/rnic/transport/qp.h"

namespace tern {

using namespace hw;

void Qp::TagReport::add_to(tern_hw_cqe &cqe) const
{
	if (opcode != TERN_CQE_RECV)
		cqe.opcode = opcode;
	if (cqe.status == TERN_WC_SUCCESS)
		cqe.status = static_cast<uint8_t>(status);
	cqe.flags |= flags;
	cqe.tag = tag;
	cqe.app_ctx = app_ctx;
}

TagList *Qp::tags() const
{
	SharedRecvQueue *srq = data_.srqs.find(config_.srqn);
	return srq && srq->tags() && !srq->failed() ? &srq->tags()->list() : nullptr;
}

void Qp::claim_tagged(uint32_t entry, const TagReport &report, size_t header)
{
	claimed_ =
	        Claimed{.srqn = config_.srqn, .index = entry, .report = report, .header = header};
}

void Qp::complete_tag(uint32_t entry, const TagReport &report, uint32_t byte_len, bool solicited)
{
	SharedRecvQueue *srq = data_.srqs.find(config_.srqn);
	tern_hw_cqe cqe{};
	cqe.wqe_index = entry;
	cqe.srqn = config_.srqn;
	cqe.byte_len = byte_len;
	report.add_to(cqe);
	if (report.flags & TERN_CQE_TAG_DATA)
		srq->tags()->list().release(entry);
	complete(srq->config().cqn, cqe, solicited);
}

void Qp::release_tags()
{
	if (claimed_ && claimed_->report.listed())
		flush_claimed();
}

} // namespace tern
