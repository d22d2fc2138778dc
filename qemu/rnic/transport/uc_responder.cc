// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/uc_responder.h"

#include "qemu/rnic/limits.h"
#include "qemu/rnic/transport/segmentation.h"
#include "qemu/rnic/transport/uc_qp.h"

namespace tern {

using namespace hw;

namespace {

/*
 * A packet up to this far behind is late or a duplicate, which Ethernet allows: executing it would
 * repeat an old message or an old WRITE. A packet further behind is new, after a very long gap.
 */
constexpr int32_t kLate = 1 << 16;

} // namespace

void UcResponder::reset(Psn rq_psn)
{
	expected_ = rq_psn;
	message_ = Message::None;
	placed_ = 0;
}

void UcResponder::receive(const Packet &packet)
{
	const int32_t distance = packet.bth.psn - expected_;
	if (distance < 0 && distance >= -kLate) {
		data_.drop(TERN_STAT_UC_RX_DROPPED, qp_.number);
		return;
	}
	/* A gap drops the message in progress. */
	if (distance != 0 || packet.info->first)
		message_ = Message::None;
	expected_ = packet.bth.psn + 1;
	if (execute(packet))
		return;
	message_ = Message::None;
	/* What ended the QP has been counted as an error of the receive. */
	if (qp_.receives())
		data_.drop(TERN_STAT_UC_RX_DROPPED, qp_.number);
}

bool UcResponder::execute(const Packet &packet)
{
	if (!in_sequence(packet) || !payload_fits(*packet.info, packet.payload.size(), qp_.mtu_))
		return false;
	return packet.info->kind == PacketKind::Send ? execute_send(packet) : execute_write(packet);
}

bool UcResponder::in_sequence(const Packet &packet) const
{
	if (packet.info->first)
		return true;
	return message_ == (packet.info->kind == PacketKind::Send ? Message::Send : Message::Write);
}

/* Without a receive WQE the message is dropped (IBA 9.8.2.2.4). */
bool UcResponder::claim_recv()
{
	return qp_.claim_recv() == UcQp::Claim::Done;
}

bool UcResponder::execute_send(const Packet &packet)
{
	if (packet.info->first) {
		if (!claim_recv())
			return false;
		placed_ = 0;
	}
	RecvWqe &wqe = data_.scratch_recv;
	switch (qp_.load_recv(wqe)) {
	case Fetch::Fault:
		return false;
	case Fetch::Invalid:
		qp_.fail_recv(packet.bth.solicited, TERN_WC_LOC_QP_OP_ERR);
		return false;
	case Fetch::Ok:
		break;
	}
	if (!send_fits(placed_, packet.payload.size(), wqe.length)) {
		qp_.fail_recv(packet.bth.solicited, TERN_WC_LOC_LEN_ERR);
		return false;
	}
	switch (qp_.scatter_recv(wqe, placed_, packet.payload)) {
	case Access::Ok:
		break;
	case Access::NeedPages:
		qp_.wait_for_pages(UcQp::Side::Responder);
		return false;
	default:
		qp_.fail_recv(packet.bth.solicited, TERN_WC_LOC_PROT_ERR);
		return false;
	}

	placed_ += packet.payload.size();
	message_ = Message::Send;
	if (packet.info->last) {
		data_.stats.add(TERN_STAT_RESP_SENDS);
		complete_recv(packet, TERN_CQE_RECV, placed_);
	}
	return true;
}

/* A WRITE without permission is dropped silently. */
bool UcResponder::begin_write(const Packet &packet)
{
	write_ = packet.ext.reth;
	placed_ = 0;
	return write_.length <= kMaxMessage && (qp_.attr_.access & TERN_ACCESS_REMOTE_WRITE) &&
	       data_.memory.check_remote(write_.rkey, write_.va, write_.length, qp_.target(),
	                                 TERN_ACCESS_REMOTE_WRITE) == Access::Ok;
}

bool UcResponder::execute_write(const Packet &packet)
{
	if (packet.info->first && !begin_write(packet))
		return false;
	const uint64_t left = write_.length - placed_;
	if (packet.info->last ? packet.payload.size() != left : packet.payload.size() >= left)
		return false;
	if (packet.info->imm && !claim_recv())
		return false;
	const Access access =
	        data_.memory.write_remote(write_.rkey, write_.va + placed_, qp_.target(),
	                                  packet.payload, left - packet.payload.size());
	if (access == Access::NeedPages)
		qp_.wait_for_pages(UcQp::Side::Responder);
	if (access != Access::Ok)
		return false;

	placed_ += packet.payload.size();
	message_ = Message::Write;
	if (packet.info->last) {
		data_.stats.add(TERN_STAT_RESP_WRITES);
		qp_.count(TERN_COMP_REMOTE_WRITE, true, write_.length);
		if (packet.info->imm)
			complete_recv(packet, TERN_CQE_RECV_WRITE_IMM, placed_);
		message_ = Message::None;
	}
	return true;
}

void UcResponder::complete_recv(const Packet &packet, uint8_t opcode, uint64_t byte_len)
{
	message_ = Message::None;
	tern_hw_cqe cqe{};
	cqe.opcode = opcode;
	cqe.byte_len = static_cast<uint32_t>(byte_len);
	if (packet.info->imm) {
		cqe.imm = packet.ext.imm;
		cqe.flags = TERN_CQE_IMM;
	}
	qp_.complete_recv(cqe, packet.bth.solicited);
}

/* A failed WRITE is not reported. */
void UcResponder::resume(bool ok)
{
	if (!ok && qp_.claim_needs_pages())
		qp_.fail_recv(false, TERN_WC_LOC_PROT_ERR);
}

} // namespace tern
