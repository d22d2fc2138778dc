// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/uc_requester.h"

#include <algorithm>

#include "qemu/rnic/limits.h"
#include "qemu/rnic/transport/segmentation.h"
#include "qemu/rnic/transport/uc_qp.h"

namespace tern {

using namespace hw;

void UcRequester::reset(Psn sq_psn)
{
	request_.reset();
	psn_ = sq_psn;
}

bool UcRequester::transmit(unsigned &budget)
{
	loaded_ = false;
	while (has_work() && !qp_.paced()) {
		if (!budget)
			return true;
		Sender::spend(budget, request_ ? 1 : 1 + Sender::kMessage);
		if (!request_)
			start();
		if (!request_)
			continue;
		const auto status = send_packet();
		if (!status)
			return false;
		const bool last = request_->packet == packets_of(request_->length, qp_.mtu_);
		if (last || *status != TERN_WC_SUCCESS)
			end(*status);
	}
	return false;
}

/* In SQD the request in progress continues, and none starts. */
bool UcRequester::has_work()
{
	if (qp_.waits_for_pages(UcQp::Side::Requester))
		return false;
	if (request_)
		return qp_.sends();
	return qp_.state() == TERN_QPS_RTS && qp_.send_posted();
}

/* Takes the next WQE from the send queue; an invalid one completes here. */
void UcRequester::start()
{
	SendWqe &wqe = data_.scratch_send;
	const uint32_t index = qp_.sq_.head();
	const Fetch fetch = qp_.sq_.fetch(data_.memory, index, wqe);
	if (fetch == Fetch::Fault) {
		qp_.fatal();
		return;
	}
	qp_.sq_.consume(wqe);
	request_ = Request{.index = index,
	                   .length = static_cast<uint32_t>(wqe.length),
	                   .packet = 0,
	                   .opcode = wqe.opcode,
	                   .flags = wqe.flags};
	loaded_ = true;
	const auto status = fetch == Fetch::Ok ? check(wqe) : TERN_WC_LOC_QP_OP_ERR;
	if (status != TERN_WC_SUCCESS)
		end(status);
	else if (wqe.is_local())
		end(qp_.execute_local(wqe));
}

tern_hw_cqe_status UcRequester::check(const SendWqe &wqe) const
{
	if (wqe.length > kMaxMessage)
		return TERN_WC_LOC_LEN_ERR;
	return data_.memory.check_local(wqe.sges(), qp_.config().domain(), false) == Access::Ok
	               ? TERN_WC_SUCCESS
	               : TERN_WC_LOC_PROT_ERR;
}

bool UcRequester::load()
{
	if (loaded_)
		return true;
	const SendWqe &wqe = data_.scratch_send;
	loaded_ = qp_.sq_.fetch(data_.memory, request_->index, data_.scratch_send) == Fetch::Ok &&
	          wqe.opcode == request_->opcode && wqe.length == request_->length;
	return loaded_;
}

std::optional<tern_hw_cqe_status> UcRequester::send_packet()
{
	if (!load())
		return TERN_WC_LOC_QP_OP_ERR;

	const Request &r = *request_;
	const SendWqe &wqe = data_.scratch_send;
	const uint64_t offset = uint64_t{r.packet} * qp_.mtu_;
	const size_t size = std::min<uint64_t>(qp_.mtu_, r.length - offset);
	const bool first = r.packet == 0;
	const bool last = offset + size == r.length;
	const bool imm = r.opcode == TERN_OP_SEND_IMM || r.opcode == TERN_OP_WRITE_IMM;
	const bool write = r.opcode == TERN_OP_WRITE || r.opcode == TERN_OP_WRITE_IMM;
	const Opcode opcode =
	        part_of(write ? PacketKind::Write : PacketKind::Send, first, last, imm);
	const Bth bth{.opcode = opcode_of(Service::Uc, opcode),
	              .solicited = last && (wqe.flags & TERN_WQE_SOLICITED),
	              .psn = psn_};
	ExtHeaders ext;
	ext.imm = wqe.imm;
	ext.reth = {wqe.remote_addr, wqe.rkey, r.length};
	Access access = Access::Ok;
	const size_t sent = qp_.send_packet(bth, ext, size, [&](std::span<std::byte> payload) {
		access = qp_.gather_send(wqe, offset, payload);
		return access == Access::Ok;
	});
	if (access == Access::NeedPages)
		qp_.wait_for_pages(UcQp::Side::Requester);
	else if (access != Access::Ok)
		return TERN_WC_LOC_PROT_ERR;
	if (!sent)
		return std::nullopt;
	qp_.pace(sent);
	++psn_;
	request_->packet++;
	return TERN_WC_SUCCESS;
}

/* A failure stops only the send queue (IBA 10.3.1.6). */
void UcRequester::end(tern_hw_cqe_status status)
{
	const Request r = *request_;
	request_.reset();
	loaded_ = false;
	const bool ok = status == TERN_WC_SUCCESS;
	if (!ok || (r.flags & TERN_WQE_SIGNALED) || qp_.config().signal_all)
		qp_.complete_send(r.index, r.opcode, status, ok ? r.length : 0);
	else
		qp_.end_silently(r.opcode, r.length);
	if (!ok) {
		data_.stats.add(TERN_STAT_REQ_CQE_ERRORS);
		qp_.enter_send_error();
	}
	qp_.check_drained();
}

void UcRequester::resume(bool ok)
{
	if (!ok && request_)
		end(TERN_WC_LOC_PROT_ERR);
	data_.scheduler.activate(qp_);
}

void UcRequester::flush()
{
	if (!request_)
		return;
	const Request r = *request_;
	reset(psn_);
	data_.stats.add(TERN_STAT_REQ_CQE_FLUSHED);
	qp_.complete_send(r.index, r.opcode, TERN_WC_WR_FLUSH_ERR, 0);
}

} // namespace tern
