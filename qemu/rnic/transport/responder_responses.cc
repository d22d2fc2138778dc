// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/responder.h"

#include <algorithm>
#include <utility>

#include "qemu/rnic/formats/burst.h"
#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/segmentation.h"

namespace tern {

using namespace hw;

uint32_t Responder::outstanding_data() const
{
	uint32_t count = 0;
	for (size_t i = 0; i < responses_.size(); i++)
		count += !responses_[i].duplicate && (responses_[i].kind == Response::Kind::Read ||
		                                      responses_[i].kind == Response::Kind::Atomic);
	return count;
}

/* An acknowledgement of more at the end of the queue covers this one. */
void Responder::acknowledge(Psn psn)
{
	if (responses_.empty() || responses_.back().kind != Response::Kind::Ack) {
		responses_.push_back({.kind = Response::Kind::Ack, .psn = psn, .msn = msn_});
		return;
	}
	Response &last = responses_.back();
	if (psn - last.psn > 0)
		last.psn = psn;
	last.msn = msn_;
}

Responder::Response Responder::make_nak(Psn psn, uint8_t syndrome)
{
	data_.ports.observer.nak_queued(qp_.number, psn.value(), syndrome);
	return {.kind = Response::Kind::Nak, .syndrome = syndrome, .psn = psn, .msn = msn_};
}

Responder::Response Responder::make_rnr_nak(Psn psn)
{
	data_.stats.add(TERN_STAT_RESP_TX_RNR_NAK);
	return make_nak(psn, kAethRnrNak | qp_.attr_.min_rnr_timer);
}

/* Makes way for a NAK of @from. Earlier requests succeeded, and the peer needs their data. */
void Responder::drop_responses(Psn from)
{
	for (size_t left = responses_.size(); left; left--) {
		const Response response = responses_.front();
		responses_.pop_front();
		if (response.psn - from < 0)
			responses_.push_back(response);
	}
}

Responder::Response Responder::make_read(const Packet &packet, bool duplicate) const
{
	const Reth &reth = packet.ext.reth;
	return {.kind = Response::Kind::Read,
	        .duplicate = duplicate,
	        .psn = packet.bth.psn,
	        .msn = msn_,
	        .target = target(packet),
	        .va = reth.va,
	        .rkey = reth.rkey,
	        .length = reth.length,
	        .is_read = true};
}

void Responder::push_read(const Packet &packet)
{
	responses_.push_back(make_read(packet, false));
}

/*
 * Queues the answer to a repeated request before those to later requests: the requester drops what
 * arrives before it. READ data that @again includes is not sent twice.
 */
void Responder::push_again(const Response &again)
{
	const Psn end = end_of(again);
	bool queued = false;
	for (size_t left = responses_.size(); left; left--) {
		const Response r = responses_.front();
		responses_.pop_front();
		if (again.kind == Response::Kind::Read && r.kind == Response::Kind::Read &&
		    r.psn - again.psn >= 0 && end_of(r) - end <= 0)
			continue;
		if (!queued && r.psn - again.psn > 0) {
			responses_.push_back(again);
			queued = true;
		}
		responses_.push_back(r);
	}
	if (!queued)
		responses_.push_back(again);
}

/* The PSN after the last packet of @response. */
Psn Responder::end_of(const Response &response) const
{
	return response.psn + packets_of(response.length, qp_.mtu_);
}

bool Responder::transmit(unsigned &budget)
{
	while (!responses_.empty()) {
		if (!budget)
			return true;
		if (responses_.front().length && qp_.response_paced())
			return false;
		send_response(responses_.front(), budget);
		if (qp_.parked())
			return false;
	}
	return false;
}

void Responder::send_response(Response &response, unsigned &budget)
{
	if (response.kind != Response::Kind::Read)
		budget--;
	switch (response.kind) {
	case Response::Kind::Ack:
		if (!send_aeth(Opcode::RcAcknowledge, response, ack_syndrome()))
			return;
		break;
	case Response::Kind::Nak:
		if (!send_aeth(Opcode::RcAcknowledge, response, response.syndrome))
			return;
		break;
	case Response::Kind::Atomic:
		if (!send_aeth(Opcode::RcAtomicAcknowledge, response, ack_syndrome()))
			return;
		break;
	case Response::Kind::Read: {
		const auto sending = send_read(response, budget);
		if (sending == SendResult::NeedPages || sending == SendResult::Failed)
			stop_read(sending == SendResult::NeedPages);
		if (sending != SendResult::Done || response.length)
			return;
		break;
	}
	}
	responses_.pop_front();
}

/*
 * Ends the READ at the front, whose data cannot be sent. If @need_pages, pages are absent: an RNR
 * NAK makes the requester repeat the READ from here on, and the requests whose responses were
 * queued behind it. Otherwise the region was destroyed while its data was sent: the connection
 * ends.
 */
void Responder::stop_read(bool need_pages)
{
	const Response stopped = responses_.front();
	const Psn psn = stopped.psn;
	if (stopped.duplicate && was_answered(end_of(stopped))) {
		stop_repeated_read(need_pages);
		return;
	}
	if (!stopped.duplicate)
		reads_end_ = psn;
	drop_responses(psn);
	if (need_pages && qp_.state() != TERN_QPS_ERR) {
		wait_for_pages(psn, false, TERN_COMP_REMOTE_READ);
		responses_.push_back(make_rnr_nak(psn));
		return;
	}
	fail_access(psn, TERN_COMP_REMOTE_READ);
}

/*
 * The requester may have the data of the READ at the front already. So the other responses stay,
 * and no failure ends the connection. The host brings the pages all the same, in case that the
 * data was lost. Then the RNR NAK makes the requester wait, otherwise it ignores that.
 */
void Responder::stop_repeated_read(bool need_pages)
{
	const Psn psn = responses_.front().psn;
	if (!need_pages || qp_.state() == TERN_QPS_ERR) {
		responses_.pop_front();
		return;
	}
	qp_.wait_for_pages(RcQp::Side::Responder);
	responses_.front() = make_rnr_nak(psn);
}

void Responder::fail_access(Psn psn, uint32_t op)
{
	qp_.count(op, false, 0);

	data_.stats.add(TERN_STAT_RESP_TX_ACCESS_NAK);
	data_.raise_event(TERN_EVENT_QP_ACCESS_ERR, qp_.number);
	push_nak(psn, nak_syndrome(NakCode::RemoteAccessError));
	qp_.enter_error();
}

/* The host sees the fault of the first packet that waits. */
void Responder::wait_for_pages(Psn psn, bool recv, uint32_t op)
{
	if (!qp_.waits_for_pages(RcQp::Side::Responder))
		page_wait_ = {psn, recv, op};
	qp_.wait_for_pages(RcQp::Side::Responder);
}

/* If the pages are present, the requester retries on its own. */
void Responder::resume(bool ok)
{
	const auto wait = page_wait_;
	page_wait_.reset();
	if (ok || !wait)
		return;
	drop_responses(wait->psn);
	if (!wait->recv) {
		fail_access(wait->psn, wait->op);
		return;
	}
	if (qp_.recv_.claimed())
		qp_.complete_recv_error(false, TERN_WC_LOC_PROT_ERR);
	data_.stats.add(TERN_STAT_RESP_TX_OP_NAK);
	push_nak(wait->psn, nak_syndrome(NakCode::RemoteOperationalError));
	qp_.enter_error();
}

/* Sends some of the data and shortens @response. */
SendResult Responder::send_read(Response &response, unsigned &budget)
{
	const uint32_t most = qp_.mtu_ * std::min(budget, kMaxBurst / qp_.mtu_);
	const uint32_t size = std::min(response.length, most);
	if (size > qp_.mtu_ && may_lend(response) && !qp_.slowed()) {
		switch (lend_read_burst(response, size)) {
		case Wire::Lend::Done:
			budget -= segments_of(size, qp_.mtu_);
			end_read_part(response, size);
			return SendResult::Done;
		case Wire::Lend::Full:
			return SendResult::Full;
		case Wire::Lend::Refused:
			break;
		}
	}
	budget--;
	return send_read_packet(response);
}

Wire::Lend Responder::lend_read_burst(const Response &response, uint32_t size)
{
	Bth bth;
	ExtHeaders ext;
	begin_read_part(response, size, bth, ext);
	return qp_.lend_burst(bth, ext, [&](HostRanges &ranges) {
		return data_.memory.locate_remote(response.rkey, response.va, response.target, size,
		                                  ranges);
	});
}

void Responder::begin_read_part(const Response &response, uint32_t size, Bth &bth, ExtHeaders &ext)
{
	bth.psn = response.psn;
	bth.opcode = static_cast<uint8_t>(
	        part_of(PacketKind::ReadResponse, !response.started, size == response.length));
	ext.aeth = {ack_syndrome(), response.msn};
}

void Responder::end_read_part(Response &response, uint32_t size)
{
	const Psn first = response.psn;
	const uint32_t packets = packets_of(size, qp_.mtu_);
	clear_wait(first, packets);
	response.started = true;
	response.va += size;
	response.length -= size;
	response.psn = first + packets;
	if (response.is_read)
		count_read(response, first, size);
}

/* Responses to duplicates are not lent, as retransmissions are not. A host that counts the READs of
 * its peer may change the data as soon as the READ is counted, so the peer gets a copy. */
bool Responder::may_lend(const Response &response) const
{
	return !response.duplicate && !qp_.counts(TERN_COMP_REMOTE_READ);
}

/*
 * @size bytes of @response have been sent, from PSN @first on. Counts a READ when its last response
 * is sent for the first time. A READ that has to wait for pages is repeated by the peer from where
 * it stopped, as a duplicate that has not been counted.
 */
void Responder::count_read(const Response &response, Psn first, uint32_t size)
{
	if (!response.duplicate)
		reads_end_ = first;
	if (first - reads_end_ < 0)
		return;
	reads_end_ = response.psn;
	read_bytes_ += size;
	if (!response.length)
		qp_.count(TERN_COMP_REMOTE_READ, true, std::exchange(read_bytes_, 0));
}

SendResult Responder::send_read_packet(Response &response)
{
	const uint32_t size = std::min(response.length, qp_.mtu_);
	Bth bth;
	ExtHeaders ext;
	begin_read_part(response, size, bth, ext);
	Memory &memory = data_.memory;
	size_t sent = 0;
	const auto sending = qp_.send_data(
	        bth, ext, size,
	        [&](HostRanges &ranges) {
		        return may_lend(response) &&
		               memory.locate_remote(response.rkey, response.va, response.target,
		                                    size, ranges);
	        },
	        [&](std::span<std::byte> payload) {
		        return memory.read_remote(response.rkey, response.va, response.target,
		                                  payload, response.length - size);
	        },
	        sent);
	if (sending != SendResult::Done)
		return sending;
	qp_.pace_response(sent);
	end_read_part(response, size);
	return sending;
}

bool Responder::send_aeth(Opcode opcode, const Response &response, uint8_t syndrome)
{
	Bth bth;
	bth.psn = response.psn;
	bth.opcode = static_cast<uint8_t>(opcode);
	ExtHeaders ext;
	ext.aeth = {syndrome, response.msn};
	ext.atomic_ack = response.original;
	return qp_.send_packet(bth, ext, 0, [](std::span<std::byte>) { return true; }) != 0;
}

/* ACK with the credits of the receive queue, including the claimed WQE; a shared queue reports none
 * (IBA 9.7.7.2). */
uint8_t Responder::ack_syndrome()
{
	const auto credits = qp_.recv_.credits();
	return kAethAck | (credits ? encode_credits(*credits) : kCreditsInvalid);
}

} // namespace tern
