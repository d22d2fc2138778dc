// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/requester.h"

#include <algorithm>

#include "qemu/rnic/card.h"
#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/segmentation.h"

namespace tern {

using namespace hw;

namespace {

/* Packets of SENDs and WRITEs in flight. */
constexpr int32_t kWindow = 256;
/* PSNs of all requests under way; beyond 2^23 "before" and "after" change places (IBA 9.7.1). */
constexpr uint32_t kMaxPsns = (1u << 23) - 1;
/* Within a long message the responder is asked for an ACK this often. */
constexpr uint32_t kAckInterval = 32;
/* By which the ACK timer exceeds its value at most, in ns. */
constexpr uint64_t kMaxStall = 250'000'000;

/* Signed distance of two 24-bit send sequence numbers. */
int32_t ssn_distance(uint32_t a, uint32_t b)
{
	return Psn(a) - Psn(b);
}

} // namespace

bool Requester::Request::expects_response() const
{
	return opcode == TERN_OP_READ || opcode == TERN_OP_CMP_SWAP ||
	       opcode == TERN_OP_FETCH_ADD || opcode == TERN_OP_ATOMIC_WRITE;
}

bool Requester::Request::takes_recv() const
{
	return opcode == TERN_OP_SEND || opcode == TERN_OP_SEND_IMM || opcode == TERN_OP_SEND_INV ||
	       opcode == TERN_OP_WRITE_IMM;
}

void Requester::reset(Psn sq_psn)
{
	requests_.clear();
	una_ = next_psn_ = sent_ = end_ = sq_psn;
	cursor_ = 0;
	data_requests_ = 0;
	ssn_ = 0;
	credits_known_ = false;
	nak_implied_ = false;
	retries_left_ = qp_.attr_.retry_cnt;
	rnr_retries_left_ = qp_.attr_.rnr_retry;
	timeout_at_ = UINT64_MAX;
	rnr_until_ = 0;
	page_wait_.reset();
	response_dropped_ = false;
}

/* ---- from work request to packet ---- */

bool Requester::transmit(unsigned &budget)
{
	loaded_.reset();
	while (qp_.sends()) {
		if (!budget)
			return true;
		switch (send_next()) {
		case Step::Sent:
			budget--;
			break;
		case Step::Blocked:
			return true;
		case Step::Stalled:
			return false;
		}
	}
	return false;
}

Requester::Step Requester::send_next()
{
	if (rnr_until_ || page_wait_)
		return Step::Stalled;
	if (next_psn_ == end_ && !start_request())
		return Step::Stalled;
	if (!qp_.sends())
		return Step::Stalled;
	/* A local operation was started: that counts as a step. */
	if (cursor_ == requests_.size())
		return Step::Sent;

	Request &r = requests_[cursor_];
	if (r.status != TERN_WC_SUCCESS)
		return Step::Stalled;
	const auto packet = static_cast<uint32_t>(next_psn_ - r.first);
	if (!may_send(r, packet))
		return Step::Stalled;
	if (!qp_.card_.port.ready())
		return Step::Blocked;
	return send_packet(r, packet);
}

/* Takes the next WQE from the send queue. False when there is none that may start now. */
bool Requester::start_request()
{
	if (qp_.state_ != TERN_QPS_RTS)
		return false;
	/* Behind a request that will fail, or that has to take effect first, nothing starts. */
	if (!requests_.empty() &&
	    (requests_.back().status != TERN_WC_SUCCESS || requests_.back().deferred))
		return false;

	if (!qp_.send_posted())
		return false;

	SendWqe &wqe = qp_.card_.scratch_send;
	const uint32_t index = qp_.sq_.head();
	const Fetch fetch = qp_.sq_.fetch(qp_.card_.memory, index, wqe);
	loaded_.reset();
	if (fetch == Fetch::Fault) {
		qp_.fatal();
		return false;
	}
	if (fetch == Fetch::Ok && must_wait(wqe))
		return false;

	Request r;
	r.index = index;
	r.opcode = wqe.opcode;
	r.flags = wqe.flags;
	r.first = end_;
	r.status = fetch == Fetch::Ok ? check_request(wqe) : TERN_WC_LOC_QP_OP_ERR;
	if (wqe.blocks)
		qp_.sq_.advance(wqe.blocks);
	else
		qp_.sq_.skip_all();
	cursor_ = requests_.size();
	if (r.status == TERN_WC_SUCCESS && wqe.is_local()) {
		start_local(r, wqe);
	} else if (r.status == TERN_WC_SUCCESS) {
		r.length = static_cast<uint32_t>(wqe.length);
		r.packets = packets_of(wqe.length, qp_.mtu_);
		ssn_ = (ssn_ + 1) & Psn::kMask;
		r.ssn = ssn_;
		data_requests_ += r.expects_response();
		end_ = r.end();
		loaded_ = index;
	}
	requests_.push_back(r);
	settle_front();
	return true;
}

/*
 * What is registered or bound serves the requests that follow, so it takes effect at once. A key is
 * taken back only when nothing before can need it any more, not even for a retransmission; so does
 * a fenced operation wait (IBA 10.8.3.3).
 */
void Requester::start_local(Request &r, const SendWqe &wqe)
{
	r.local = true;
	r.deferred = wqe.opcode == TERN_OP_LOCAL_INV || (wqe.flags & TERN_WQE_FENCE);
	if (!r.deferred)
		r.status = qp_.execute_local(wqe);
	if (r.status == TERN_WC_SUCCESS)
		cursor_++;
}

/* IBA 10.8.3.3: a fenced request waits for earlier READs and atomics; 9.7.3.1: their number is
 * limited. */
bool Requester::must_wait(const SendWqe &wqe) const
{
	if ((wqe.flags & TERN_WQE_FENCE) && data_requests_)
		return true;
	if (wqe.length <= kMaxMessage &&
	    static_cast<uint32_t>(end_ - una_) + packets_of(wqe.length, qp_.mtu_) > kMaxPsns)
		return true;
	return wqe.expects_response() && qp_.attr_.max_rd_atomic &&
	       data_requests_ >= qp_.attr_.max_rd_atomic;
}

tern_hw_cqe_status Requester::check_request(const SendWqe &wqe) const
{
	if (wqe.length > kMaxMessage)
		return TERN_WC_LOC_LEN_ERR;
	if (wqe.expects_response() && !qp_.attr_.max_rd_atomic)
		return TERN_WC_LOC_QP_OP_ERR;
	const Access access =
	        qp_.card_.memory.check_local(wqe.sges(), qp_.domain(), wqe.expects_data());
	return access == Access::Ok ? TERN_WC_SUCCESS : TERN_WC_LOC_PROT_ERR;
}

bool Requester::may_send(const Request &r, uint32_t packet) const
{
	return (r.expects_response() || next_psn_ - una_ < kWindow) && has_credit(r, packet);
}

/*
 * End-to-end flow control (IBA 9.7.7.2): a message that has no credit may probe with its one
 * packet that takes a receive WQE, when nothing else is in flight.
 */
bool Requester::has_credit(const Request &r, uint32_t packet) const
{
	if (covered(r))
		return true;
	const uint32_t taking = r.opcode == TERN_OP_WRITE_IMM ? r.packets - 1 : 0;
	if (packet == taking)
		return next_psn_ == una_;
	return packet < taking || una_ - r.first > static_cast<int32_t>(taking);
}

/* Whether the responder is known to have a receive WQE for @r, or says nothing of them. */
bool Requester::covered(const Request &r) const
{
	return !credits_known_ || !r.takes_recv() || ssn_distance(r.ssn, limit_ssn_) <= 0;
}

bool Requester::load(const Request &r)
{
	if (loaded_ == r.index)
		return true;
	loaded_.reset();
	/* The guest may have changed it since it was checked; then it is no longer this request. */
	const SendWqe &wqe = qp_.card_.scratch_send;
	if (qp_.sq_.fetch(qp_.card_.memory, r.index, qp_.card_.scratch_send) != Fetch::Ok ||
	    wqe.opcode != r.opcode || wqe.length != r.length)
		return false;
	loaded_ = r.index;
	return true;
}

Requester::Step Requester::send_packet(Request &r, uint32_t packet)
{
	if (!load(r)) {
		r.status = TERN_WC_LOC_QP_OP_ERR;
		settle_front();
		return Step::Stalled;
	}

	const bool again = next_psn_ - sent_ < 0;
	switch (send_request_packet(r, packet, qp_.card_.scratch_send)) {
	case Access::Ok:
		break;
	case Access::NeedPages:
		wait_for_pages(next_psn_);
		return Step::Stalled;
	default:
		r.status = TERN_WC_LOC_PROT_ERR;
		settle_front();
		return Step::Stalled;
	}
	if (again)
		qp_.card_.stats.add(TERN_STAT_REQ_RETRANSMITS);

	/* A READ request stands for all PSNs of its responses. */
	next_psn_ = r.opcode == TERN_OP_READ ? r.end() : next_psn_ + 1;
	if (next_psn_ - sent_ > 0)
		sent_ = next_psn_;
	if (next_psn_ == r.end()) {
		cursor_++;
		skip_local();
	}
	if (timeout_at_ == UINT64_MAX)
		arm_timer();
	return Step::Sent;
}

bool Requester::wants_ack(const Request &r, uint32_t packet) const
{
	return packet + 1 == r.packets || packet % kAckInterval == kAckInterval - 1 ||
	       next_psn_ - una_ == kWindow - 1 || !covered(r);
}

Access Requester::send_request_packet(Request &r, uint32_t packet, const SendWqe &wqe)
{
	const uint64_t offset = uint64_t{packet} * qp_.mtu_;
	const bool first = packet == 0;
	const bool last = packet + 1 == r.packets;
	ExtHeaders ext;
	ext.imm = wqe.imm;
	ext.inv_rkey = wqe.imm;
	ext.srqn = wqe.srqn;
	ext.reth = {wqe.remote_addr, wqe.rkey, r.length};

	Bth bth;
	bth.psn = next_psn_;
	bth.ack_request = true;
	size_t size = 0;
	switch (r.opcode) {
	case TERN_OP_READ:
		bth.opcode = static_cast<uint8_t>(Opcode::RcReadRequest);
		ext.reth.va += offset;
		ext.reth.length -= static_cast<uint32_t>(offset);
		break;
	case TERN_OP_CMP_SWAP:
	case TERN_OP_FETCH_ADD:
		bth.opcode = static_cast<uint8_t>(
		        r.opcode == TERN_OP_CMP_SWAP ? Opcode::RcCompareSwap : Opcode::RcFetchAdd);
		ext.atomic = {wqe.remote_addr, wqe.rkey, wqe.swap_add, wqe.compare};
		break;
	case TERN_OP_ATOMIC_WRITE:
		bth.opcode = static_cast<uint8_t>(Opcode::RcAtomicWrite);
		size = r.length;
		break;
	default: {
		const bool imm = r.opcode == TERN_OP_SEND_IMM || r.opcode == TERN_OP_WRITE_IMM;
		const bool inv = r.opcode == TERN_OP_SEND_INV;
		const bool write = r.opcode == TERN_OP_WRITE || r.opcode == TERN_OP_WRITE_IMM;
		size = std::min<uint64_t>(qp_.mtu_, r.length - offset);
		bth.opcode = static_cast<uint8_t>(opcode_at(
		        first, last, imm, write ? Opcode::RcWriteFirst : Opcode::RcSendFirst));
		if (inv && last)
			bth.opcode = static_cast<uint8_t>(first ? Opcode::RcSendOnlyInv
			                                        : Opcode::RcSendLastInv);
		bth.solicited = last && (wqe.flags & TERN_WQE_SOLICITED);
		bth.ack_request = wants_ack(r, packet);
	}
	}

	Access access = Access::Ok;
	qp_.send_packet(bth, ext, size, [&](std::span<std::byte> payload) {
		access = qp_.gather_send(wqe, offset, payload);
		return access == Access::Ok;
	});
	return access;
}

/* ---- from response to completion ---- */

void Requester::receive(const Packet &packet)
{
	loaded_.reset();
	/* From a dropped response on all is asked for once more. */
	if (response_dropped_)
		return;
	/* A PSN that was never sent, or none is waited for: a ghost of an earlier connection
	 * (IBA 9.7.5.1.1). */
	if (packet.bth.psn - sent_ >= 0 || requests_.empty()) {
		qp_.card_.stats.add(TERN_STAT_REQ_DUP_ACK);
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
	settle_front();
	qp_.check_drained();
	/* Room in the window, a fence lifted, a request to send again: the next turn tells. */
	if (qp_.sends())
		qp_.card_.port.activate(qp_);
}

void Requester::receive_ack(const Packet &packet)
{
	switch (packet.ext.aeth.syndrome & kAethKindMask) {
	case kAethAck:
		if (packet.bth.psn - una_ < 0)
			qp_.card_.stats.add(TERN_STAT_REQ_DUP_ACK);
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
		qp_.card_.stats.add(TERN_STAT_REQ_BAD_RESP);
		break;
	}
}

void Requester::update_credits(const Aeth &aeth)
{
	const uint8_t code = aeth.syndrome & kAethValueMask;
	const bool counted = code != kCreditsInvalid;
	const uint32_t limit = (aeth.msn + decode_credits(code)) & Psn::kMask;
	/* The count is rounded down and may come late, but what was once granted stays so. */
	if (counted && (!credits_known_ || ssn_distance(limit, limit_ssn_) > 0))
		limit_ssn_ = limit;
	credits_known_ = counted;
}

void Requester::receive_nak(const Packet &packet)
{
	/* A NAK acknowledges all before the PSN that it names. */
	if (packet.bth.psn - una_ < 0)
		return;
	Stats &stats = qp_.card_.stats;
	const auto code = static_cast<NakCode>(packet.ext.aeth.syndrome & kAethValueMask);
	if (!acknowledge(packet.bth.psn)) {
		/* The peer failed a later request, but data of an earlier one is missing: ask for
		 * that first. */
		implied_nak();
		return;
	}
	if (requests_.empty())
		return;

	switch (code) {
	case NakCode::PsnSequenceError:
		stats.add(TERN_STAT_REQ_RX_SEQ_NAK);
		if (spend_retry())
			seek(packet.bth.psn);
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

void Requester::receive_rnr(const Packet &packet)
{
	/* While we wait nothing is sent: the same NAK once more. */
	if (packet.bth.psn - una_ < 0 || rnr_until_)
		return;
	qp_.card_.stats.add(TERN_STAT_REQ_RX_RNR_NAK);
	if (!acknowledge(packet.bth.psn)) {
		implied_nak();
		return;
	}
	if (requests_.empty())
		return;
	/* 7 means for ever (IBA 9.7.5.2.8). */
	if (qp_.attr_.rnr_retry != 7) {
		if (!rnr_retries_left_) {
			qp_.card_.stats.add(TERN_STAT_REQ_RNR_RETRY_EXCEEDED);
			fail(TERN_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		rnr_retries_left_--;
	}
	seek(packet.bth.psn);
	/* The peer answers: what got lost before is forgotten. */
	retries_left_ = qp_.attr_.retry_cnt;
	rnr_until_ = qp_.card_.ports.clock.now() +
	             rnr_timer_ns(packet.ext.aeth.syndrome & kAethValueMask);
	timeout_at_ = UINT64_MAX;
	qp_.card_.set_timer(qp_, rnr_until_);
}

/* The request whose next data packet this is; null when it is not the time for it. */
Requester::Request *Requester::expect_data(const Packet &packet, bool atomic)
{
	const Psn psn = packet.bth.psn;
	if (psn - una_ < 0) {
		qp_.card_.stats.add(TERN_STAT_REQ_DUP_ACK);
		return nullptr;
	}
	/* Data acknowledges all requests before its own. */
	if (!acknowledge(psn)) {
		implied_nak();
		return nullptr;
	}
	if (requests_.empty() || requests_.front().status != TERN_WC_SUCCESS)
		return nullptr;
	Request &r = requests_.front();
	const bool is_atomic = r.opcode == TERN_OP_CMP_SWAP || r.opcode == TERN_OP_FETCH_ADD;
	if (!r.expects_response() || is_atomic != atomic || psn != r.first + r.responses ||
	    !shape_matches(r, packet)) {
		qp_.card_.stats.add(TERN_STAT_REQ_BAD_RESP);
		fail(TERN_WC_BAD_RESP_ERR);
		return nullptr;
	}
	return &r;
}

/* The opcode and the size that the response packet at this place must have (IBA 9.7.5.1.5). */
bool Requester::shape_matches(const Request &r, const Packet &packet) const
{
	if (r.opcode == TERN_OP_ATOMIC_WRITE)
		return packet.info->first && packet.info->last && packet.payload.empty();
	if (r.opcode != TERN_OP_READ)
		return true;
	const uint64_t offset = uint64_t{r.responses} * qp_.mtu_;
	const bool last = r.responses + 1 == r.packets;
	/* After a retry the responder starts anew with First or Only, in the middle of ours. */
	return packet.info->last == last &&
	       packet.payload.size() == std::min<uint64_t>(qp_.mtu_, r.length - offset);
}

void Requester::receive_read_response(const Packet &packet)
{
	if (packet.info->aeth && (packet.ext.aeth.syndrome & kAethKindMask) != kAethAck) {
		qp_.card_.stats.add(TERN_STAT_REQ_BAD_RESP);
		return;
	}
	Request *r = expect_data(packet, false);
	if (!r || (r->opcode == TERN_OP_READ &&
	           !place(*r, uint64_t{r->responses} * qp_.mtu_, packet.payload)))
		return;
	r->responses++;
	if (packet.info->aeth)
		update_credits(packet.ext.aeth);
	progress(r->first + r->responses);
	if (r->responses == r->packets)
		complete_front();
}

void Requester::receive_atomic_ack(const Packet &packet)
{
	Request *r = expect_data(packet, true);
	if (!r)
		return;
	const __le64 original = packet.ext.atomic_ack;
	if (!place(*r, 0, std::as_bytes(std::span(&original, 1))))
		return;
	r->responses = 1;
	update_credits(packet.ext.aeth);
	progress(r->end());
	complete_front();
}

/* Writes response data to the local buffers. */
bool Requester::place(Request &r, uint64_t offset, std::span<const std::byte> data)
{
	if (!load(r)) {
		fail(TERN_WC_LOC_QP_OP_ERR);
		return false;
	}
	switch (qp_.card_.memory.scatter(qp_.card_.scratch_send.sges(), qp_.domain(), offset,
	                                 data)) {
	case Access::Ok:
		return true;
	case Access::NeedPages:
		response_dropped_ = true;
		/* It was there, though. */
		retries_left_ = qp_.attr_.retry_cnt;
		wait_for_pages(una_);
		return false;
	default:
		fail(TERN_WC_LOC_PROT_ERR);
		return false;
	}
}

bool Requester::acknowledge(Psn end)
{
	while (!requests_.empty() && end - una_ > 0) {
		Request &r = requests_.front();
		if (r.status != TERN_WC_SUCCESS)
			return true;
		if (r.local) {
			settle_front();
			continue;
		}
		if (r.expects_response())
			/* Only its data completes it. Up to there the acknowledgement says nothing
			 * new. */
			return end - (r.first + r.responses) <= 0;
		if (end - r.end() < 0) {
			progress(end);
			return true;
		}
		progress(r.end());
		complete_front();
	}
	settle_front();
	return true;
}

/* The peer gets on: fresh retries, fresh timeout. */
void Requester::progress(Psn una)
{
	una_ = una;
	if (next_psn_ - una_ < 0)
		seek(una_);
	retries_left_ = qp_.attr_.retry_cnt;
	rnr_retries_left_ = qp_.attr_.rnr_retry;
	nak_implied_ = false;
	rnr_until_ = 0;
	arm_timer();
}

void Requester::complete_front()
{
	const Request r = requests_.front();
	requests_.pop_front();
	if (cursor_)
		cursor_--;
	data_requests_ -= r.expects_response();
	if ((r.flags & TERN_WQE_SIGNALED) || qp_.config().signal_all)
		qp_.complete_send(r.index, r.opcode, TERN_WC_SUCCESS, r.length);
}

void Requester::settle_front()
{
	while (!requests_.empty()) {
		Request &r = requests_.front();
		if (r.deferred) {
			r.status = load(r) ? qp_.execute_local(qp_.card_.scratch_send)
			                   : TERN_WC_LOC_QP_OP_ERR;
			r.deferred = false;
		}
		if (r.status != TERN_WC_SUCCESS)
			return fail(r.status);
		if (!r.local)
			return;
		complete_front();
	}
}

void Requester::fail(tern_hw_cqe_status status)
{
	const Request r = requests_.front();
	requests_.pop_front();
	qp_.card_.stats.add(TERN_STAT_REQ_CQE_ERRORS);
	qp_.complete_send(r.index, r.opcode, status, 0);
	qp_.enter_error();
}

void Requester::flush()
{
	while (!requests_.empty()) {
		const Request r = requests_.front();
		requests_.pop_front();
		qp_.card_.stats.add(TERN_STAT_REQ_CQE_FLUSHED);
		qp_.complete_send(r.index, r.opcode, TERN_WC_WR_FLUSH_ERR, 0);
	}
	reset(next_psn_);
}

/* ---- going back ---- */

/* A later response arrived before an earlier one (IBA 9.7.5.2.5): ask again, once for each batch in
 * flight. */
void Requester::implied_nak()
{
	/* After RNR, too, we have gone back already. */
	if (nak_implied_ || rnr_until_)
		return;
	qp_.card_.stats.add(TERN_STAT_REQ_IMPLIED_NAK);
	if (!spend_retry())
		return;
	seek(una_);
	nak_implied_ = true;
}

bool Requester::spend_retry()
{
	if (!retries_left_) {
		qp_.card_.stats.add(TERN_STAT_REQ_RETRY_EXCEEDED);
		fail(TERN_WC_RETRY_EXC_ERR);
		return false;
	}
	retries_left_--;
	return true;
}

/* The next packet to send is that of @psn, in una_ .. end_. */
void Requester::seek(Psn psn)
{
	next_psn_ = psn;
	cursor_ = 0;
	while (cursor_ < requests_.size() && next_psn_ - requests_[cursor_].end() >= 0 &&
	       requests_[cursor_].status == TERN_WC_SUCCESS)
		cursor_++;
}

/* To the next request that has packets, or that will fail. */
void Requester::skip_local()
{
	while (cursor_ < requests_.size() && requests_[cursor_].local &&
	       requests_[cursor_].status == TERN_WC_SUCCESS)
		cursor_++;
}

/* The wait is this host's, so it costs no retry. */
void Requester::wait_for_pages(Psn psn)
{
	if (!page_wait_)
		page_wait_ = psn;
	timeout_at_ = UINT64_MAX;
	qp_.wait_for_pages(RcQp::Side::Requester);
}

void Requester::resume(bool ok)
{
	if (!page_wait_)
		return;
	loaded_.reset();
	const Psn psn = *page_wait_;
	page_wait_.reset();
	if (response_dropped_) {
		response_dropped_ = false;
		seek(una_);
		/* What still comes of the responses that followed means nothing. */
		nak_implied_ = true;
	}
	if (!ok)
		fail_at(psn);
	if (!qp_.sends())
		return;
	arm_timer();
	qp_.card_.port.activate(qp_);
}

/* The request of @psn fails as soon as all before it have ended. */
void Requester::fail_at(Psn psn)
{
	for (size_t i = 0; i < requests_.size(); i++) {
		Request &r = requests_[i];
		if (psn - r.first >= 0 && psn - r.end() < 0 && r.status == TERN_WC_SUCCESS)
			r.status = TERN_WC_LOC_PROT_ERR;
	}
	settle_front();
}

void Requester::arm_timer()
{
	timeout_at_ = UINT64_MAX;
	if (una_ == sent_ || !qp_.attr_.timeout || page_wait_)
		return;
	/* The specification allows one to four times the value (IBA 9.7.6.1.3). A short one is
	 * stretched, because a peer in software can be kept from its processor. */
	const uint64_t value = 4096ull << qp_.attr_.timeout;
	timeout_at_ = qp_.card_.ports.clock.now() + value + std::min(3 * value, kMaxStall);
	qp_.card_.set_timer(qp_, timeout_at_);
}

void Requester::on_timer(uint64_t now)
{
	if (rnr_until_ && now >= rnr_until_) {
		rnr_until_ = 0;
		qp_.card_.port.activate(qp_);
	}
	if (now >= timeout_at_) {
		qp_.card_.stats.add(TERN_STAT_REQ_TIMEOUTS);
		timeout_at_ = UINT64_MAX;
		if (!spend_retry())
			return;
		nak_implied_ = false;
		seek(una_);
		arm_timer();
		qp_.card_.port.activate(qp_);
	}
	if (rnr_until_)
		qp_.card_.set_timer(qp_, rnr_until_);
	if (timeout_at_ != UINT64_MAX)
		qp_.card_.set_timer(qp_, timeout_at_);
}

} // namespace tern
