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
bool UcResponder::execute_send(const Packet &packet)
{
	if (packet.info->first) {
		if (!qp_.act_on(qp_.recv_.claim(), packet.bth.solicited))
			return false;
		placed_ = 0;
	}
	if (!qp_.act_on(qp_.recv_.place(placed_, packet.payload), packet.bth.solicited))
		return false;

	placed_ += packet.payload.size();
	message_ = packet.info->last ? Message::None : Message::Send;
	if (packet.info->last) {
		data_.stats.add(TERN_STAT_RESP_SENDS);
		qp_.complete_message(packet, TERN_CQE_RECV, placed_);
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
	if (packet.info->imm && !qp_.act_on(qp_.recv_.claim(), packet.bth.solicited))
		return false;
	const Access access =
	        data_.memory.write_remote(write_.rkey, write_.va + placed_, qp_.target(),
	                                  packet.payload, left - packet.payload.size());
	if (access == Access::NeedPages)
		qp_.wait_for_pages(UcQp::Side::Responder);
	if (access != Access::Ok)
		return false;

	placed_ += packet.payload.size();
	message_ = packet.info->last ? Message::None : Message::Write;
	if (packet.info->last) {
		data_.stats.add(TERN_STAT_RESP_WRITES);
		qp_.count(TERN_COMP_REMOTE_WRITE, true, write_.length);
		if (packet.info->imm)
			qp_.complete_message(packet, TERN_CQE_RECV_WRITE_IMM, placed_);
	}
	return true;
}

} // namespace tern
