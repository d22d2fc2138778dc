// SPDX-License-Identifier: GPL-2.0-or-later
/* Responses received by the requester: acknowledgements and data. */
#include <algorithm>

#include "qemu/rnic/formats/burst.h"
#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/requester.h"
#include "qemu/rnic/transport/segmentation.h"

namespace tern {

using namespace hw;

void Requester::receive(const Packet &packet)
{
	loaded_.reset();
	/* All responses from the dropped one on will be requested again. */
	if (response_dropped_)
		return;
	/* A PSN that was never sent, or a response that is not expected: a packet of an earlier
	 * connection (IBA 9.7.5.1.1). */
	if (packet.bth.psn - sent_ >= 0 || requests_.empty()) {
		data_.stats.add(TERN_STAT_REQ_DUP_ACK);
		return;
	}
	switch (packet.info->kind) {
	case PacketKind::Acknowledge:
		receive_ack(packet);
		break;
	case PacketKind::ReadResponse:
		receive_read_response(packet);
		break;
	default:
		receive_atomic_ack(packet);
		break;
	}
	after_response();
}

void Requester::after_response()
{
	retire_front();
	qp_.check_drained();
	/* There may be room in the window, a lifted fence or a packet to retransmit. */
	if (qp_.sends())
		data_.scheduler.activate(qp_);
}

void Requester::receive_ack(const Packet &packet)
{
	const uint8_t syndrome = packet.ext.aeth.syndrome;
	if ((syndrome & kAethKindMask) != kAethAck)
		data_.ports.observer.nak_received(qp_.number, packet.bth.psn.value(), syndrome);
	switch (syndrome & kAethKindMask) {
	case kAethAck:
		if (packet.bth.psn - una_ < 0)
			data_.stats.add(TERN_STAT_REQ_DUP_ACK);
		update_credits(packet.ext.aeth);
		if (!acknowledge(packet.bth.psn + 1))
			implied_nak();
		break;
	case kAethRnrNak:
		receive_rnr(packet);
		break;
	case kAethNak:
		receive_nak(packet);
		break;
	default:
		data_.stats.add(TERN_STAT_REQ_BAD_RESP);
		break;
	}
}

void Requester::update_credits(const Aeth &aeth)
{
	const uint8_t code = aeth.syndrome & kAethValueMask;
	const bool counted = code != kCreditsInvalid;
	if (counted)
		assumed_ = 0;
	const uint32_t credits = counted ? decode_credits(code) : assume_credits();
	const bool known = counted || assumed_;
	const uint32_t limit = (aeth.msn + credits) & Psn::kMask;
	/* The count is rounded down and may be delayed, but a credit once granted remains valid. */
	if (known && (!credits_known_ || Psn(limit) - Psn(limit_ssn_) > 0))
		limit_ssn_ = limit;
	/* A message that began while there was no limit goes on: its packets in flight may not have
	 * asked for the ACK that it would have to wait for. */
	const bool limited = known && !credits_known_;
	credits_known_ = known;
	if (limited && cursor_ < requests_.size() && !has_recv_wqe(requests_[cursor_]) &&
	    next_psn_ - requests_[cursor_].first > 0)
		limit_ssn_ = requests_[cursor_].ssn;
}

/* Twice as many with each acknowledgement after RNR, until they limit nothing. */
uint32_t Requester::assume_credits()
{
	assumed_ *= 2;
	if (assumed_ > static_cast<uint32_t>(window_))
		assumed_ = 0;
	return assumed_;
}

/*
 * A responder that counts no credits, as with an SRQ, has no receive WQE: one message is sent as a
 * probe. What follows a message that gets RNR again is sent in vain, and where many QPs share an
 * SRQ it takes the responder's host the time to post receives.
 */
void Requester::withdraw_credits(const Aeth &aeth)
{
	if (credits_known_ && !assumed_)
		return;
	credits_known_ = true;
	assumed_ = 1;
	limit_ssn_ = aeth.msn;
}

/* As on hardware, RX_SEQ_NAK counts those that arrive, also those that change nothing. */
void Requester::receive_nak(const Packet &packet)
{
	Stats &stats = data_.stats;
	const auto code = static_cast<NakCode>(packet.ext.aeth.syndrome & kAethValueMask);
	if (code == NakCode::PsnSequenceError)
		stats.add(TERN_STAT_REQ_RX_SEQ_NAK);
	/* A NAK acknowledges all PSNs before its own. */
	if (packet.bth.psn - una_ < 0)
		return;
	if (!acknowledge(packet.bth.psn)) {
		/* The peer rejected a later request, but data of an earlier one is missing: request
		 * that first. */
		implied_nak();
		return;
	}
	if (requests_.empty())
		return;

	switch (code) {
	case NakCode::PsnSequenceError:
		receive_sequence_nak();
		break;
	case NakCode::InvalidRequest:
		stats.add(TERN_STAT_REQ_RX_INV_REQ_NAK);
		fail(TERN_WC_REM_INV_REQ_ERR);
		break;
	case NakCode::RemoteAccessError:
		stats.add(TERN_STAT_REQ_RX_ACCESS_NAK);
		fail(TERN_WC_REM_ACCESS_ERR);
		break;
	case NakCode::RemoteOperationalError:
		stats.add(TERN_STAT_REQ_RX_OP_NAK);
		fail(TERN_WC_REM_OP_ERR);
		break;
	default:
		stats.add(TERN_STAT_REQ_BAD_RESP);
		break;
	}
}

/*
 * Goes back to una_, which the peer has not received. A responder sends one such NAK until that
 * packet arrives (IBA 9.7.5.2.8), so a second NAK without progress in between is a duplicate, even
 * if the requester has retransmitted everything since. If una_ is lost again, the ACK timer
 * expires and causes the next retransmission.
 */
void Requester::receive_sequence_nak()
{
	if (sequence_nak_) {
		data_.stats.add(TERN_STAT_REQ_DUP_ACK);
		return;
	}
	if (!consume_retry())
		return;
	if (data_.takes_rtts())
		qp_.rate_control().on_loss();
	go_back();
	sequence_nak_ = true;
}

void Requester::receive_rnr(const Packet &packet)
{
	/* A repeated RNR NAK while the requester waits is ignored. */
	if (packet.bth.psn - una_ < 0 || rnr_until_)
		return;
	data_.stats.add(TERN_STAT_REQ_RX_RNR_NAK);
	if (!acknowledge(packet.bth.psn)) {
		implied_nak();
		return;
	}
	if (requests_.empty())
		return;
	/* 7 means infinite (IBA 9.7.5.2.8). */
	if (qp_.attr_.rnr_retry != 7) {
		if (!rnr_retries_left_) {
			data_.stats.add(TERN_STAT_REQ_RNR_RETRY_EXCEEDED);
			fail(TERN_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		rnr_retries_left_--;
	}
	go_back();
	withdraw_credits(packet.ext.aeth);
	/* The peer has received the packet: earlier losses no longer count. */
	retries_left_ = qp_.attr_.retry_cnt;
	sequence_nak_ = false;
	rnr_until_ =
	        data_.ports.clock.now() + rnr_timer_ns(packet.ext.aeth.syndrome & kAethValueMask);
	refused_ = true;
	timeout_at_ = UINT64_MAX;
	qp_.set_timer(rnr_until_);
}

/* The request whose next response @packet is; null if it is not expected, or if its syndrome is
 * that of a NAK. */
Requester::Request *Requester::expect_data(const Packet &packet, bool atomic)
{
	if (packet.info->aeth && (packet.ext.aeth.syndrome & kAethKindMask) != kAethAck) {
		data_.stats.add(TERN_STAT_REQ_BAD_RESP);
		return nullptr;
	}
	const Psn psn = packet.bth.psn;
	if (psn - una_ < 0) {
		data_.stats.add(TERN_STAT_REQ_DUP_ACK);
		return nullptr;
	}
	/* A response acknowledges all requests before its own. */
	if (!acknowledge(psn)) {
		implied_nak();
		return nullptr;
	}
	if (requests_.empty() || requests_.front().status != TERN_WC_SUCCESS)
		return nullptr;
	Request &r = requests_.front();
	if (!r.expects_response() || is_atomic(r.opcode) != atomic ||
	    psn != r.first + r.responses || !shape_matches(r, packet)) {
		data_.stats.add(TERN_STAT_REQ_BAD_RESP);
		fail(TERN_WC_BAD_RESP_ERR);
		return nullptr;
	}
	return &r;
}

/* Checks opcode and size of the response at its position (IBA 9.7.5.1.5). */
bool Requester::shape_matches(const Request &r, const Packet &packet) const
{
	if (r.opcode == TERN_OP_ATOMIC_WRITE || r.opcode == TERN_OP_FLUSH)
		return packet.info->first && packet.info->last && packet.payload.empty();
	if (r.opcode != TERN_OP_READ)
		return true;
	const uint64_t offset = uint64_t{r.responses} * qp_.mtu_;
	const bool last = r.responses + 1 == r.packets;
	/* After a retransmission the responder starts with First or Only again, so first is not
	 * checked. */
	return packet.info->last == last &&
	       packet.payload.size() == std::min<uint64_t>(qp_.mtu_, r.length - offset);
}

void Requester::receive_read_response(const Packet &packet)
{
	Request *r = expect_data(packet, false);
	if (!r || (r->opcode == TERN_OP_READ &&
	           !place(*r, uint64_t{r->responses} * qp_.mtu_, packet.payload)))
		return;
	if (packet.info->aeth)
		update_credits(packet.ext.aeth);
	take_responses(*r, 1);
}

/* Only the next expected responses of the oldest request, a READ, and only if they succeed. */
uint32_t Requester::receive_burst(const Packet &burst)
{
	loaded_.reset();
	const uint32_t packets = packets_in(burst);
	const Psn end = burst.bth.psn + packets;
	if (response_dropped_ || end - sent_ > 0 || requests_.empty() ||
	    (burst.info->aeth && (burst.ext.aeth.syndrome & kAethKindMask) != kAethAck))
		return 0;
	Request &r = requests_.front();
	const uint64_t offset = uint64_t{r.responses} * qp_.mtu_;
	const bool last = end == r.end();
	if (r.status != TERN_WC_SUCCESS || r.opcode != TERN_OP_READ ||
	    burst.bth.psn != r.first + r.responses || burst.info->last != last ||
	    end - r.end() > 0 || (last && burst.payload.size() != r.length - offset) || !load(r) ||
	    data_.memory.scatter(data_.scratch_send.sges(), domain(r), offset, burst.payload) !=
	            Access::Ok)
		return 0;
	if (burst.info->aeth)
		update_credits(burst.ext.aeth);
	take_responses(r, packets);
	after_response();
	return packets;
}

void Requester::receive_atomic_ack(const Packet &packet)
{
	Request *r = expect_data(packet, true);
	if (!r)
		return;
	const __le64 original = packet.ext.atomic_ack;
	if (!place(*r, 0, std::as_bytes(std::span(&original, 1))))
		return;
	update_credits(packet.ext.aeth);
	take_responses(*r, 1);
}

/* Writes response data to the local buffers. */
bool Requester::place(Request &r, uint64_t offset, const Payload &data)
{
	if (!load(r)) {
		fail(TERN_WC_LOC_QP_OP_ERR);
		return false;
	}
	switch (data_.memory.scatter(data_.scratch_send.sges(), domain(r), offset, data)) {
	case Access::Ok:
		return true;
	case Access::NeedPages:
		response_dropped_ = true;
		/* The response did arrive, so retries are reset. */
		retries_left_ = qp_.attr_.retry_cnt;
		wait_for_pages(una_);
		return false;
	default:
		fail(TERN_WC_LOC_PROT_ERR);
		return false;
	}
}

} // namespace tern
