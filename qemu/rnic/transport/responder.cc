// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/responder.h"

#include <algorithm>

#include "qemu/rnic/formats/burst.h"
#include "qemu/rnic/limits.h"
#include "qemu/rnic/transport/atomics.h"
#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/segmentation.h"

namespace tern {

using namespace hw;

namespace {

/* Responses that may be queued; requests beyond that are dropped. */
constexpr size_t kMaxResponses = 4 * kMaxRdAtomic;

/* What a request is counted as (TERN_COMP_*); 0: as nothing. */
uint32_t operation_of(const Packet &packet)
{
	switch (packet.info->kind) {
	case PacketKind::ReadRequest:
		return TERN_COMP_REMOTE_READ;
	case PacketKind::Write:
		return TERN_COMP_REMOTE_WRITE;
	default:
		return 0;
	}
}

} // namespace

void Responder::reset(Psn rq_psn)
{
	responses_.clear();
	atomics_.fill({});
	expected_ = rq_psn;
	last_answered_ = rq_psn + Psn::kMask; /* rq_psn - 1 */
	reads_end_ = rq_psn;
	read_bytes_ = 0;
	msn_ = 0;
	nak_sent_ = false;
	message_ = Message::None;
	placed_ = 0;
	page_wait_.reset();
}

/* A host that has received the peer's last message may end the connection at once. The peer must
 * get the acknowledgement of that message first, because after the end nobody answers a
 * retransmission. */
void Responder::end()
{
	for (size_t left = responses_.size(); left; left--) {
		const Response response = responses_.front();
		responses_.pop_front();
		/* A response without data is an acknowledgement. */
		if (response.kind != Response::Kind::Read || !response.length)
			responses_.push_back(response);
	}
	/* A parked QP tries again, because there may be room by now. */
	data_.scheduler.activate(qp_);
	unsigned budget = kMaxResponses;
	transmit(budget);
}

/* ---- requests ---- */

void Responder::receive(const Packet &packet)
{
	if (responses_.size() >= kMaxResponses) {
		data_.drop(TERN_STAT_RX_BAD_STATE, qp_.number);
		return;
	}
	const int32_t distance = packet.bth.psn - expected_;
	if (distance == 0)
		receive_expected(packet);
	else if (distance < 0)
		receive_duplicate(packet);
	else
		receive_ahead();
	if (!responses_.empty())
		data_.scheduler.activate(qp_);
}

/* A packet was lost: send one NAK until a packet arrives in sequence (IBA 9.7.5.2.8). As on
 * hardware, OUT_OF_SEQUENCE counts gaps, not the packets behind them. */
void Responder::receive_ahead()
{
	if (nak_sent_)
		return;
	nak_sent_ = true;
	data_.stats.add(TERN_STAT_RESP_OUT_OF_SEQUENCE);
	data_.stats.add(TERN_STAT_RESP_TX_SEQ_NAK);
	push_nak(expected_, nak_syndrome(NakCode::PsnSequenceError));
}

/* If the QP failed because the CQE of a message was lost, the host never hears of the message, and
 * the peer must not take it for received. */
void Responder::receive_expected(const Packet &packet)
{
	nak_sent_ = false;
	const bool valid = in_sequence(packet) &&
	                   payload_fits(*packet.info, packet.payload.size(), qp_.mtu_) &&
	                   find_srq(packet);
	Outcome outcome = valid ? execute(packet) : Outcome::InvalidRequest;
	if (outcome == Outcome::Done && !qp_.receives())
		outcome = Outcome::Fatal;
	if (outcome != Outcome::Done) {
		reject(packet, outcome);
		return;
	}
	clear_wait(packet.bth.psn, 1);
	if (packet.info->kind == PacketKind::Send || packet.info->kind == PacketKind::Write)
		advance(packet);
	else
		last_answered_ = packet.bth.psn;
}

void Responder::advance(const Packet &packet)
{
	expected_ = expected_ + packets_in(packet);
	if (packet.bth.ack_request)
		acknowledge(last_executed());
}

/* These packets succeeded; one of them may have waited for pages. */
void Responder::clear_wait(Psn psn, uint32_t packets)
{
	if (page_wait_ && page_wait_->psn - psn >= 0 && page_wait_->psn - (psn + packets) < 0)
		page_wait_.reset();
}

/* Executes a burst only if it is expected and succeeds. Otherwise its packets are delivered one by
 * one; nothing has changed that would affect them. */
uint32_t Responder::receive_burst(const Packet &burst)
{
	if (responses_.size() >= kMaxResponses || burst.bth.psn != expected_ ||
	    !in_sequence(burst) || !find_srq(burst))
		return 0;
	const bool done = burst.info->kind == PacketKind::Write
	                          ? execute_write(burst) == Outcome::Done
	                          : execute_send_burst(burst);
	if (!done)
		return 0;
	/* The CQ may have failed, so that the QP is in ERR. Then the card has processed the burst,
	 * but does not acknowledge it: see receive_expected(). */
	if (!qp_.receives())
		return packets_in(burst);
	nak_sent_ = false;
	clear_wait(burst.bth.psn, packets_in(burst));
	advance(burst);
	if (!responses_.empty())
		data_.scheduler.activate(qp_);
	return packets_in(burst);
}

/* The order of First, Middle, Last and Only (IBA 9.7.4.1.1, table 48). An invalid request, whose
 * kind is neither of the two and which is no first packet, is in no order. */
bool Responder::in_sequence(const Packet &packet) const
{
	const OpcodeInfo &info = *packet.info;
	if (message_ == Message::None)
		return info.first;
	const auto kind = message_ == Message::Send ? PacketKind::Send : PacketKind::Write;
	return !info.first && info.kind == kind;
}

/* XRC: the SRQ must be of the QP's domain and the same in all packets of a message (A14.4),
 * including those repeated after a page fault. */
bool Responder::find_srq(const Packet &packet)
{
	if (!packet.info->xrceth)
		return true;
	const SharedRecvQueue *srq = data_.srqs.find(packet.ext.srqn);
	if (!srq || srq->closing || srq->config().xrcdn != qp_.config().xrcdn)
		return false;
	if ((message_ != Message::None || qp_.recv_.claimed()) && packet.ext.srqn != srqn_)
		return false;
	srqn_ = packet.ext.srqn;
	return true;
}

/* For XRC the protection domain is that of the SRQ; for a duplicate the SRQ may not exist any
 * more. */
Memory::Target Responder::target(const Packet &packet) const
{
	if (!packet.info->xrceth)
		return qp_.target();
	const SharedRecvQueue *srq = data_.srqs.find(packet.ext.srqn);
	return {srq ? srq->config().pdn : 0, qp_.number};
}

Responder::Outcome Responder::execute(const Packet &packet)
{
	switch (packet.info->kind) {
	case PacketKind::Send:
		return execute_send(packet);
	case PacketKind::Write:
		return execute_write(packet);
	case PacketKind::ReadRequest:
		return execute_read(packet);
	case PacketKind::AtomicWrite:
		return execute_atomic_write(packet);
	case PacketKind::Flush:
		return execute_flush(packet);
	default:
		return execute_atomic(packet);
	}
}

Responder::Outcome Responder::claim_recv()
{
	const RecvResult claimed =
	        qp_.config().type == TERN_QPT_XRC_TGT ? qp_.recv_.claim(srqn_) : qp_.recv_.claim();
	if (claimed == RecvResult::Empty)
		return Outcome::Rnr;
	return claimed == RecvResult::Done ? Outcome::Done : Outcome::Fatal;
}

Responder::Outcome Responder::execute_send(const Packet &packet)
{
	Payload data = packet.payload;
	if (packet.info->first) {
		const Outcome outcome = claim_for_send(packet);
		if (outcome != Outcome::Done)
			return outcome;
		if (!qp_.recv_.claimed()) {
			data_.stats.add(TERN_STAT_RESP_SENDS);
			finish_message();
			return Outcome::Done;
		}
		data = data.skip(qp_.recv_.header());
		placed_ = 0;
	} else if (!qp_.recv_.claimed()) {
		/* Its SRQ was destroyed. */
		return Outcome::InvalidRequest;
	}

	const RecvResult placed = qp_.recv_.place(placed_, data);
	switch (placed) {
	case RecvResult::Done:
		return end_send(packet, data.size());
	case RecvResult::NeedPages:
		return Outcome::NeedPages;
	case RecvResult::QueueFailed:
		return Outcome::Fatal;
	default:
		qp_.complete_recv_error(packet.bth.solicited, status_of(placed));
		return placed == RecvResult::TooLong ? Outcome::TooLong : Outcome::OperationalError;
	}
}

/* Tag matching and error reporting work packet by packet. */
bool Responder::execute_send_burst(const Packet &burst)
{
	if (burst.info->first) {
		if (qp_.recv_.tags() || claim_recv() != Outcome::Done)
			return false;
		placed_ = 0;
	} else if (!qp_.recv_.claimed()) {
		return false;
	}
	if (qp_.recv_.place(placed_, burst.payload) != RecvResult::Done)
		return false;
	end_send(burst, burst.payload.size());
	return true;
}

Responder::Outcome Responder::end_send(const Packet &packet, size_t size)
{
	placed_ += size;
	message_ = Message::Send;
	if (packet.info->ieth && !invalidate(packet)) {
		qp_.complete_recv_error(packet.bth.solicited, TERN_WC_LOC_ACCESS_ERR);
		return Outcome::BadInvalidate;
	}
	if (packet.info->last) {
		data_.stats.add(TERN_STAT_RESP_SENDS);
		finish_message();
		qp_.complete_message(packet, TERN_CQE_RECV, placed_);
	}
	return Outcome::Done;
}

bool Responder::invalidate(const Packet &packet)
{
	const uint32_t key = packet.ext.inv_rkey;
	if (!data_.memory.may_invalidate(key, target(packet), Memory::Invalidator::Peer))
		return false;
	data_.out.recall(Recall::of_key(key));
	data_.memory.invalidate(key);
	data_.stats.add(TERN_STAT_RESP_INVALIDATES);
	return true;
}

/* Without the right, the request is one that the receive queue does not support, whatever its key
 * (IBA 11.6.2): an invalid request. */
bool Responder::supports(uint8_t right) const
{
	return qp_.attr_.access & right;
}

bool Responder::allowed(const Packet &packet, uint8_t right) const
{
	const Reth &reth = packet.ext.reth;
	return data_.memory.check_remote(reth.rkey, reth.va, reth.length, target(packet), right) ==
	       Access::Ok;
}

Responder::Outcome Responder::begin_write(const Packet &packet)
{
	const Reth &reth = packet.ext.reth;
	if (!supports(TERN_ACCESS_REMOTE_WRITE) || reth.length > kMaxMessage)
		return Outcome::InvalidRequest;
	if (packet.info->last ? reth.length != packet.payload.size()
	                      : reth.length <= packet.payload.size())
		return Outcome::InvalidRequest;
	/* For a single-packet WRITE, Memory::write_remote() makes the same check. */
	const bool one_step = packet.info->last && !packet.info->imm;
	if (!one_step && !allowed(packet, TERN_ACCESS_REMOTE_WRITE))
		return Outcome::AccessError;
	write_ = reth;
	placed_ = 0;
	return Outcome::Done;
}

Responder::Outcome Responder::execute_write(const Packet &packet)
{
	if (packet.info->first) {
		const Outcome outcome = begin_write(packet);
		if (outcome != Outcome::Done)
			return outcome;
	}
	const uint64_t left = write_.length - placed_;
	if (packet.info->last ? packet.payload.size() != left : packet.payload.size() >= left)
		return Outcome::InvalidRequest;
	if (packet.info->imm) {
		const Outcome outcome = claim_recv();
		if (outcome != Outcome::Done)
			return outcome;
	}
	switch (data_.memory.write_remote(write_.rkey, write_.va + placed_, target(packet),
	                                  packet.payload, left - packet.payload.size())) {
	case Access::Ok:
		break;
	case Access::NeedPages:
		return Outcome::NeedPages;
	default:
		return Outcome::AccessError;
	}

	placed_ += packet.payload.size();
	message_ = Message::Write;
	if (packet.info->last) {
		data_.stats.add(TERN_STAT_RESP_WRITES);
		finish_message();
		qp_.count(TERN_COMP_REMOTE_WRITE, true, write_.length);
		if (packet.info->imm)
			qp_.complete_message(packet, TERN_CQE_RECV_WRITE_IMM, write_.length);
	}
	return Outcome::Done;
}

Responder::Outcome Responder::execute_read(const Packet &packet)
{
	const Reth &reth = packet.ext.reth;
	if (!supports(TERN_ACCESS_REMOTE_READ) || !message_fits(reth.length, qp_.mtu_) ||
	    outstanding_data() >= qp_.attr_.max_dest_rd_atomic)
		return Outcome::InvalidRequest;
	if (!allowed(packet, TERN_ACCESS_REMOTE_READ))
		return Outcome::AccessError;

	data_.stats.add(TERN_STAT_RESP_READS);
	finish_message();
	push_read(packet);
	expected_ = expected_ + packets_of(reth.length, qp_.mtu_);
	return Outcome::Done;
}

Responder::Outcome Responder::execute_atomic(const Packet &packet)
{
	const AtomicEth &atomic = packet.ext.atomic;
	if (!supports(TERN_ACCESS_REMOTE_ATOMIC) || (atomic.va & 7) ||
	    outstanding_data() >= qp_.attr_.max_dest_rd_atomic)
		return Outcome::InvalidRequest;

	const Opcode opcode = rc_opcode(packet.bth.opcode);
	uint64_t original = 0;
	const Access access = data_.memory.atomic_remote(
	        atomic.rkey, atomic.va, target(packet), original,
	        [&](uint64_t value) { return atomic_result(opcode, packet.ext, value); });
	if (access == Access::NeedPages)
		return Outcome::NeedPages;
	if (access != Access::Ok)
		return Outcome::AccessError;

	data_.stats.add(TERN_STAT_RESP_ATOMICS);
	finish_message();
	atomics_[next_atomic_++ % atomics_.size()] = {true, packet.bth.psn, original};
	responses_.push_back({.kind = Response::Kind::Atomic,
	                      .psn = packet.bth.psn,
	                      .msn = msn_,
	                      .original = original});
	++expected_;
	return Outcome::Done;
}

void Responder::finish_message()
{
	message_ = Message::None;
	msn_ = (msn_ + 1) & Psn::kMask;
}

/* Sends the NAK of @outcome; all but RNR end the connection (IBA 9.9.3). */
void Responder::reject(const Packet &packet, Outcome outcome)
{
	Stats &stats = data_.stats;
	const Psn psn = packet.bth.psn;
	switch (outcome) {
	case Outcome::NeedPages:
		wait_for_pages(psn, packet.info->kind == PacketKind::Send, operation_of(packet));
		[[fallthrough]];
	case Outcome::Rnr:
		responses_.push_back(make_rnr_nak(psn));
		/* Packets in flight behind this one get no NAK of their own. */
		nak_sent_ = true;
		return;
	case Outcome::InvalidRequest:
		data_.raise_event(TERN_EVENT_QP_REQ_ERR, qp_.number);
		[[fallthrough]];
	case Outcome::TooLong: /* reported by the receive completion */
		stats.add(TERN_STAT_RESP_TX_INV_REQ_NAK);
		push_nak(psn, nak_syndrome(NakCode::InvalidRequest));
		break;
	case Outcome::AccessError:
		data_.raise_event(TERN_EVENT_QP_ACCESS_ERR, qp_.number);
		[[fallthrough]];
	case Outcome::BadInvalidate: /* reported by the receive completion */
		stats.add(TERN_STAT_RESP_TX_ACCESS_NAK);
		push_nak(psn, nak_syndrome(NakCode::RemoteAccessError));
		break;
	case Outcome::OperationalError:
		stats.add(TERN_STAT_RESP_TX_OP_NAK);
		push_nak(psn, nak_syndrome(NakCode::RemoteOperationalError));
		break;
	case Outcome::Fatal:
		return qp_.fatal();
	case Outcome::Done:
		return;
	}
	qp_.count(operation_of(packet), false, 0);
	qp_.enter_error();
}

/* ---- duplicate requests ---- */

/* The request was executed; its response was lost (IBA 9.7.4.5.2). */
void Responder::receive_duplicate(const Packet &packet)
{
	data_.stats.add(TERN_STAT_RESP_DUPLICATES);
	const Psn psn = packet.bth.psn;
	switch (packet.info->kind) {
	case PacketKind::Send:
	case PacketKind::Write:
		/* An ACK that covers a READ or an atomic whose answer was lost makes the requester
		 * send that request once more. */
		acknowledge(last_answered_ - psn > 0 ? psn : last_executed());
		break;
	case PacketKind::ReadRequest: {
		const Reth &reth = packet.ext.reth;
		const uint32_t packets = packets_of(reth.length, qp_.mtu_);
		if (!message_fits(reth.length, qp_.mtu_) || psn + packets - expected_ > 0 ||
		    read_queued(psn))
			return;
		if (supports(TERN_ACCESS_REMOTE_READ) && allowed(packet, TERN_ACCESS_REMOTE_READ))
			push_again(make_read(packet, true));
		else if (!was_answered(psn + packets))
			reject(packet, Outcome::AccessError);
		break;
	}
	case PacketKind::AtomicWrite:
	case PacketKind::Flush:
		if (!read_queued(psn))
			push_again(make_empty_read(psn, true));
		break;
	case PacketKind::Invalid:
		break;
	default:
		repeat_atomic(psn);
		break;
	}
}

/*
 * Whether the READ responses before @end were sent before. The requester may have them and only
 * repeat the request, so the region may be gone. A READ that has to wait for pages is repeated,
 * too, but its last responses were never sent.
 */
bool Responder::was_answered(Psn end) const
{
	return end - reads_end_ <= 0;
}

/* Latest first: an older result may have the same PSN after a wrap. */
void Responder::repeat_atomic(Psn psn)
{
	for (size_t back = 1; back <= atomics_.size(); back++) {
		const AtomicResult &result = atomics_[(next_atomic_ - back) % atomics_.size()];
		if (!result.valid || result.psn != psn)
			continue;
		push_again({.kind = Response::Kind::Atomic,
		            .duplicate = true,
		            .psn = psn,
		            .msn = msn_,
		            .original = result.original});
		return;
	}
}

/* Whether a queued response will send the data from @psn on. */
bool Responder::read_queued(Psn psn) const
{
	for (size_t i = 0; i < responses_.size(); i++) {
		const Response &r = responses_[i];
		if (r.kind == Response::Kind::Read && psn - r.psn >= 0 && psn - end_of(r) < 0)
			return true;
	}
	return false;
}

} // namespace tern
