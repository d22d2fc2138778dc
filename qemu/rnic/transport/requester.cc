// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/requester.h"

#include <algorithm>

#include "qemu/rnic/formats/burst.h"
#include "qemu/rnic/limits.h"
#include "qemu/rnic/transport/rc_qp.h"
#include "qemu/rnic/transport/segmentation.h"

namespace tern {

using namespace hw;

namespace {

/* Packets of SENDs and WRITEs in flight. kWindow suits hosts with small rings. kLentWindow is for
 * wires that take bursts and thus lose nothing; it is large enough that both ends rarely wait for
 * each other. */
constexpr int32_t kWindow = 256;
constexpr int32_t kLentWindow = 1024;
/* Outstanding requests: as many as the window takes, and local operations between them. One
 * response can complete them all. */
constexpr size_t kMaxRequests = kLentWindow + 256;
/* Within a long message an ACK is requested this often, in packets. */
constexpr uint32_t kAckInterval = 32;
/* Round-trip times are those of segments of kAckInterval packets. At a low rate, where a segment
 * takes long, other packets are timed, too, as often as this. */
constexpr uint64_t kTimingInterval = 1'000'000; /* ns */
/* Maximum size of a frame's headers and ICRC. */
constexpr uint32_t kHeaders = kMaxRoceFrame - 4096;

/* Returns the opcode on the wire of an atomic that is posted as @opcode. */
Opcode atomic_opcode(uint8_t opcode)
{
	switch (opcode) {
	case TERN_OP_CMP_SWAP:
		return Opcode::RcCompareSwap;
	case TERN_OP_MASKED_CMP_SWAP:
		return Opcode::RcMaskedCompareSwap;
	case TERN_OP_MASKED_FETCH_ADD:
		return Opcode::RcMaskedFetchAdd;
	default:
		return Opcode::RcFetchAdd;
	}
}

} // namespace

bool Requester::Request::takes_recv() const
{
	return opcode == TERN_OP_SEND || opcode == TERN_OP_SEND_IMM || opcode == TERN_OP_SEND_INV ||
	       opcode == TERN_OP_WRITE_IMM;
}

void Requester::reset(Psn sq_psn)
{
	requests_.clear();
	una_ = next_psn_ = sent_ = end_ = sq_psn;
	window_ = kWindow;
	cursor_ = 0;
	data_requests_ = 0;
	data_psns_ = 0;
	ssn_ = 0;
	credits_known_ = false;
	assumed_ = 0;
	nak_implied_ = false;
	sequence_nak_ = false;
	refill_retries();
	timed_.reset();
	timed_at_ = 0;
	timeout_at_ = UINT64_MAX;
	rnr_until_ = 0;
	refused_ = false;
	page_wait_.reset();
	response_dropped_ = false;
}

void Requester::refill_retries()
{
	retries_left_ = qp_.attr_.retry_cnt;
	rnr_retries_left_ = qp_.attr_.rnr_retry;
}

/* ---- from work requests to packets ---- */

bool Requester::transmit(unsigned &budget)
{
	loaded_.reset();
	while (qp_.sends()) {
		if (!budget)
			return true;
		if (send_next(budget) == Step::Stalled)
			return false;
	}
	return false;
}

Requester::Step Requester::send_next(unsigned &budget)
{
	if (rnr_until_ || page_wait_)
		return Step::Stalled;
	if (next_psn_ == end_ && !start_request())
		return Step::Stalled;
	if (!qp_.sends())
		return Step::Stalled;
	/* A local operation was started, which counts as a step. */
	if (cursor_ == requests_.size()) {
		Sender::spend(budget, Sender::kMessage);
		return Step::Sent;
	}

	Request &r = requests_[cursor_];
	if (r.status != TERN_WC_SUCCESS)
		return Step::Stalled;
	const auto packet = static_cast<uint32_t>(next_psn_ - r.first);
	if (!may_send(r) || qp_.paced() || qp_.parked())
		return Step::Stalled;
	return send_packets(r, packet, budget);
}

/* Starts the next request. Returns false if none may start now. */
bool Requester::start_request()
{
	if (qp_.state_ != TERN_QPS_RTS)
		return false;
	/* Nothing starts behind a request that will fail or that is deferred. */
	if (!requests_.empty() &&
	    (requests_.back().status != TERN_WC_SUCCESS || requests_.back().deferred))
		return false;
	if (!rendezvous_.due())
		return start_posted();
	/* The send queue and the card's own requests alternate. */
	if (posted_first_)
		return start_posted() || start_rendezvous();
	return start_rendezvous() || start_posted();
}

/* Takes the next WQE from the send queue. */
bool Requester::start_posted()
{
	if (!qp_.send_posted())
		return false;

	SendWqe &wqe = data_.scratch_send;
	const uint32_t index = qp_.sq_.head();
	const Fetch fetch = qp_.sq_.fetch(data_.memory, index, wqe);
	loaded_.reset();
	if (fetch == Fetch::Fault) {
		qp_.fatal();
		return false;
	}
	if (fetch == Fetch::Ok && must_wait(wqe))
		return false;

	Request &r = requests_.emplace_back();
	r.index = index;
	r.opcode = wqe.opcode;
	r.flags = wqe.flags;
	r.status = fetch == Fetch::Ok ? check_request(r, wqe) : TERN_WC_LOC_QP_OP_ERR;
	qp_.sq_.consume(wqe);
	posted_first_ = false;
	enter(r, wqe);
	return true;
}

void Requester::enter(Request &r, const SendWqe &wqe)
{
	r.first = end_;
	cursor_ = requests_.size() - 1;
	if (r.status == TERN_WC_SUCCESS && wqe.is_local()) {
		start_local(r, wqe);
	} else if (r.status == TERN_WC_SUCCESS) {
		r.length = static_cast<uint32_t>(wqe.length);
		r.packets = packets_of(wqe.length, qp_.mtu_);
		ssn_ = (ssn_ + 1) & Psn::kMask;
		r.ssn = ssn_;
		data_requests_ += r.expects_response();
		end_ = r.end();
		if (!r.rendezvous)
			loaded_ = r.index;
	}
	retire_front();
}

/*
 * Registration and binding take effect at once, for the requests that follow; without a CQE, that
 * ends them. An invalidation, or a fenced operation, is deferred until no earlier request can need
 * the key, not even for a retransmission (IBA 10.8.3.3).
 */
void Requester::start_local(Request &r, const SendWqe &wqe)
{
	r.local = true;
	r.deferred = wqe.opcode == TERN_OP_LOCAL_INV || (wqe.flags & TERN_WQE_FENCE);
	if (!r.deferred)
		r.status = qp_.execute_local(wqe);
	if (r.status != TERN_WC_SUCCESS)
		return;
	if (r.deferred || is_signaled(r))
		cursor_++;
	else
		requests_.pop_back();
}

bool Requester::is_signaled(const Request &r) const
{
	return r.rendezvous || (r.flags & TERN_WQE_SIGNALED) || qp_.config().signal_all;
}

/* A correct host has at most as many requests outstanding as its ring has blocks. A fenced request
 * waits for the host's earlier requests with a response of their own (IBA 10.8.3.3). */
bool Requester::must_wait(const SendWqe &wqe) const
{
	if (requests_.size() - rendezvous_.requests() >=
	    std::min<size_t>(qp_.sq_.blocks(), kMaxRequests))
		return true;
	if ((wqe.flags & TERN_WQE_FENCE) && data_requests_ != rendezvous_.reads_under_way())
		return true;
	return exceeds_limits(wqe);
}

/* Limits the PSNs in use, and the outstanding requests with a response of their own (IBA 9.7.3.1).
 */
bool Requester::exceeds_limits(const SendWqe &wqe) const
{
	if (message_fits(wqe.length, qp_.mtu_) &&
	    static_cast<uint32_t>(end_ - una_) + packets_of(wqe.length, qp_.mtu_) > kMaxPsns)
		return true;
	return wqe.expects_response() && qp_.attr_.max_rd_atomic &&
	       data_requests_ >= qp_.attr_.max_rd_atomic;
}

/* A rendezvous fills a buffer of the SRQ. */
Memory::Domain Requester::domain(const Request &r) const
{
	return r.rendezvous ? qp_.recv_.domain(qp_.config().srqn) : qp_.config().domain();
}

tern_hw_cqe_status Requester::check_request(const Request &r, const SendWqe &wqe) const
{
	if (!message_fits(wqe.length, qp_.mtu_))
		return TERN_WC_LOC_LEN_ERR;
	if (wqe.expects_response() && !qp_.attr_.max_rd_atomic)
		return TERN_WC_LOC_QP_OP_ERR;
	const Access access = data_.memory.check_local(wqe.sges(), domain(r), wqe.expects_data());
	return access == Access::Ok ? TERN_WC_SUCCESS : TERN_WC_LOC_PROT_ERR;
}

bool Requester::may_send(const Request &r) const
{
	return (r.expects_response() || in_window(next_psn_) < window_) && has_credit(r);
}

/*
 * End-to-end flow control (IBA 9.7.7.2): a message without credit may send only the packet that
 * takes a receive WQE, as a probe, when nothing else is in flight.
 */
bool Requester::has_credit(const Request &r) const
{
	if (has_recv_wqe(r))
		return true;
	if (next_psn_ == r.taking())
		return next_psn_ == una_;
	return next_psn_ - r.taking() < 0 || una_ - r.taking() > 0;
}

/* Whether the responder has a receive WQE for @r, or does not report credits. */
bool Requester::has_recv_wqe(const Request &r) const
{
	return !credits_known_ || !r.takes_recv() || Psn(r.ssn) - Psn(limit_ssn_) <= 0;
}

bool Requester::load(const Request &r)
{
	SendWqe &wqe = data_.scratch_send;
	if (r.rendezvous) {
		loaded_.reset();
		if (r.opcode == TERN_OP_READ)
			rendezvous_[r.index].make_read(wqe);
		else
			rendezvous_[r.index].make_fin(wqe);
		return true;
	}
	if (loaded_ == r.index)
		return true;
	loaded_.reset();
	/* The guest may have changed the WQE after it was validated. */
	if (qp_.sq_.fetch(data_.memory, r.index, data_.scratch_send) != Fetch::Ok ||
	    wqe.opcode != r.opcode || wqe.length != r.length)
		return false;
	loaded_ = r.index;
	return true;
}

Requester::Step Requester::send_packets(Request &r, uint32_t packet, unsigned &budget)
{
	if (!load(r)) {
		r.status = TERN_WC_LOC_QP_OP_ERR;
		retire_front();
		return Step::Stalled;
	}

	const auto spend = [&](uint32_t packets) {
		Sender::spend(budget, packets + (packet == 0 ? Sender::kMessage : 0));
	};
	const SendWqe &wqe = data_.scratch_send;
	const uint32_t packets = burst_of(r, packet, wqe, budget);
	if (packets > 1) {
		switch (lend_burst(r, packet, packets, wqe)) {
		case Wire::Lend::Done:
			window_ = kLentWindow;
			spend(packets);
			sent_packets(r, packets);
			return Step::Sent;
		case Wire::Lend::Full:
			return Step::Stalled;
		case Wire::Lend::Refused:
			window_ = kWindow;
			break;
		}
	}

	switch (send_request_packet(r, packet, wqe)) {
	case SendResult::Done:
		spend(1);
		sent_packets(r, 1);
		return Step::Sent;
	case SendResult::Full:
		return Step::Stalled;
	case SendResult::NeedPages:
		wait_for_pages(next_psn_);
		return Step::Stalled;
	default:
		r.status = TERN_WC_LOC_PROT_ERR;
		retire_front();
		return Step::Stalled;
	}
}

void Requester::sent_packets(const Request &r, uint32_t packets)
{
	if (const int32_t again = sent_ - next_psn_; again > 0)
		data_.stats.add(TERN_STAT_REQ_RETRANSMITS,
		                std::min(packets, static_cast<uint32_t>(again)));

	/* A READ request stands for all PSNs of its responses. */
	const Psn end = r.opcode == TERN_OP_READ ? r.end() : next_psn_ + packets;
	if (r.expects_response())
		data_psns_ += end - next_psn_;
	next_psn_ = end;
	if (next_psn_ - sent_ > 0) {
		sent_ = next_psn_;
		if (data_.takes_rtts())
			start_timing(r);
	}
	if (next_psn_ == r.end()) {
		cursor_++;
		skip_local();
	}
	if (timeout_at_ == UINT64_MAX)
		arm_timer();
}

/* Starts to time the packet that was sent last, if it has asked for an ACK: it ends a segment, or
 * the rate makes the QP wait behind it (wants_ack()). Nothing is timed behind a request with a
 * response, because the time includes what the responder takes for that. */
void Requester::start_timing(const Request &r)
{
	if (timed_ || data_psns_)
		return;
	const uint64_t now = data_.ports.clock.now();
	const bool ends_segment = next_psn_ == r.end() || (next_psn_ - r.first) % kAckInterval == 0;
	const bool overdue = now - timed_at_ >= kTimingInterval && qp_.paced_after(0);
	if (!ends_segment && !overdue)
		return;
	timed_ = next_psn_;
	timed_at_ = now;
}

/* Without TIMELY there may be no controller that could take the time. */
void Requester::end_timing()
{
	if (data_.takes_rtts())
		qp_.rate_control().on_rtt(data_.ports.clock.now() - timed_at_);
	timed_.reset();
}

/* Advances to the next request that has packets or will fail. */
void Requester::skip_local()
{
	while (cursor_ < requests_.size() && requests_[cursor_].local &&
	       requests_[cursor_].status == TERN_WC_SUCCESS)
		cursor_++;
}

/* Also before a rate-limit pause, which the ACK timer would take for a loss. */
bool Requester::wants_ack(const Request &r, uint32_t packet, Psn psn) const
{
	return packet + 1 == r.packets || packet % kAckInterval == kAckInterval - 1 ||
	       in_window(psn) == window_ - 1 || !has_recv_wqe(r) ||
	       qp_.paced_after(qp_.mtu_ + kHeaders);
}

/* Ends a burst at the next packet that requests an acknowledgement, or earlier. Retransmissions,
 * inline data, and packets under a rate limit or without credits are sent one by one. */
uint32_t Requester::burst_of(const Request &r, uint32_t packet, const SendWqe &wqe,
                             unsigned budget) const
{
	if (r.expects_response() || (wqe.flags & TERN_WQE_INLINE) || sends_again() ||
	    qp_.rate_limited() || !has_recv_wqe(r))
		return 1;
	/* Immediate data and invalidation are in the last packet, which is sent alone. */
	const bool carries = r.opcode != TERN_OP_SEND && r.opcode != TERN_OP_WRITE;
	const uint32_t left = r.packets - packet - (carries ? 1 : 0);
	const auto window = static_cast<uint32_t>(window_ - in_window(next_psn_));
	return std::min(
	        {left, window, kAckInterval - packet % kAckInterval, budget, kMaxBurst / qp_.mtu_});
}

Wire::Lend Requester::lend_burst(const Request &r, uint32_t packet, uint32_t packets,
                                 const SendWqe &wqe)
{
	Bth bth;
	ExtHeaders ext;
	const size_t size = describe(r, packet, packets, wqe, bth, ext);
	return qp_.lend_burst(bth, ext, [&](HostRanges &ranges) {
		return qp_.locate_send(wqe, uint64_t{packet} * qp_.mtu_, size, ranges);
	});
}

size_t Requester::describe(const Request &r, uint32_t packet, uint32_t packets, const SendWqe &wqe,
                           Bth &bth, ExtHeaders &ext) const
{
	const bool first = packet == 0;
	const bool last = packet + packets == r.packets;
	const bool imm = r.opcode == TERN_OP_SEND_IMM || r.opcode == TERN_OP_WRITE_IMM;
	const bool inv = r.opcode == TERN_OP_SEND_INV;
	const bool write = r.opcode == TERN_OP_WRITE || r.opcode == TERN_OP_WRITE_IMM;
	bth.opcode = static_cast<uint8_t>(
	        part_of(write ? PacketKind::Write : PacketKind::Send, first, last, imm));
	if (inv && last)
		bth.opcode =
		        static_cast<uint8_t>(first ? Opcode::RcSendOnlyInv : Opcode::RcSendLastInv);
	bth.psn = next_psn_;
	bth.solicited = last && (wqe.flags & TERN_WQE_SOLICITED);
	bth.ack_request = wants_ack(r, packet + packets - 1, next_psn_ + (packets - 1));
	ext.imm = wqe.imm;
	ext.inv_rkey = wqe.imm;
	ext.srqn = wqe.srqn;
	ext.reth = {wqe.remote_addr, wqe.rkey, r.length};
	return std::min<uint64_t>(uint64_t{packets} * qp_.mtu_,
	                          r.length - uint64_t{packet} * qp_.mtu_);
}

size_t Requester::describe_data_request(const Request &r, uint32_t packet, const SendWqe &wqe,
                                        Bth &bth, ExtHeaders &ext) const
{
	bth.psn = next_psn_;
	bth.ack_request = true;
	ext.srqn = wqe.srqn;
	ext.reth = {wqe.remote_addr, wqe.rkey, r.length};
	switch (r.opcode) {
	case TERN_OP_READ: {
		const uint64_t offset = uint64_t{packet} * qp_.mtu_;
		bth.opcode = static_cast<uint8_t>(Opcode::RcReadRequest);
		ext.reth.va += offset;
		ext.reth.length -= static_cast<uint32_t>(offset);
		return 0;
	}
	case TERN_OP_ATOMIC_WRITE:
		bth.opcode = static_cast<uint8_t>(Opcode::RcAtomicWrite);
		return r.length;
	case TERN_OP_FLUSH:
		bth.opcode = static_cast<uint8_t>(Opcode::RcFlush);
		ext.feth = {wqe.flush.type, wqe.flush.level};
		ext.reth.length = wqe.flush.length;
		return 0;
	default:
		bth.opcode = static_cast<uint8_t>(atomic_opcode(r.opcode));
		ext.atomic = {wqe.remote_addr, wqe.rkey, wqe.swap_add, wqe.compare};
		ext.masks = {wqe.swap_add_mask, wqe.compare_mask};
		return 0;
	}
}

SendResult Requester::send_request_packet(Request &r, uint32_t packet, const SendWqe &wqe)
{
	const uint64_t offset = uint64_t{packet} * qp_.mtu_;
	Bth bth;
	ExtHeaders ext;
	const size_t size = r.expects_response() ? describe_data_request(r, packet, wqe, bth, ext)
	                                         : describe(r, packet, 1, wqe, bth, ext);
	size_t sent = 0;
	const auto sending = qp_.send_data(
	        bth, ext, size,
	        [&](HostRanges &ranges) {
		        return !sends_again() && qp_.locate_send(wqe, offset, size, ranges);
	        },
	        [&](std::span<std::byte> payload) { return qp_.gather_send(wqe, offset, payload); },
	        sent);
	qp_.pace(sent);
	return sending;
}

/* ---- completion of requests ---- */

bool Requester::acknowledge(Psn end)
{
	const Psn before = una_;
	while (!requests_.empty() && end - una_ > 0) {
		const Request &r = requests_.front();
		if (r.status != TERN_WC_SUCCESS || r.expects_response())
			break;
		if (r.local) {
			retire_front();
			continue;
		}
		if (end - r.end() < 0) {
			una_ = end;
			break;
		}
		una_ = r.end();
		complete_front();
	}
	if (una_ != before)
		progress(una_);
	if (requests_.empty() || end - una_ <= 0) {
		retire_front();
		return true;
	}
	/* A request with a response is completed only by that. An acknowledgement up to there is
	 * not new. */
	const Request &r = requests_.front();
	return r.status != TERN_WC_SUCCESS || end - (r.first + r.responses) <= 0;
}

/* The peer makes progress: resets retries and timeout. */
void Requester::progress(Psn una)
{
	una_ = una;
	if (timed_ && una_ - *timed_ >= 0)
		end_timing();
	if (next_psn_ - una_ < 0)
		go_back();
	refill_retries();
	refused_ = false;
	nak_implied_ = false;
	sequence_nak_ = false;
	rnr_until_ = 0;
	arm_timer();
}

/* The next @packets responses of @r, the oldest request, have arrived. */
void Requester::take_responses(Request &r, uint32_t packets)
{
	r.responses += packets;
	const Psn end = r.first + r.responses;
	/* Otherwise they answer what was sent before the requester went back, see go_back(). */
	if (next_psn_ - end >= 0)
		data_psns_ -= static_cast<int32_t>(packets);
	progress(end);
	if (r.responses == r.packets)
		complete_front();
}

void Requester::complete_front()
{
	const Request r = requests_.front();
	requests_.pop_front();
	if (cursor_)
		cursor_--;
	data_requests_ -= r.expects_response();
	if (is_signaled(r))
		report(r, TERN_WC_SUCCESS);
	else
		qp_.end_silently(r.opcode, r.length);
}

void Requester::report(const Request &r, tern_hw_cqe_status status)
{
	const uint32_t placed = status == TERN_WC_SUCCESS ? r.length : 0;
	if (r.rendezvous)
		report_rendezvous(r, status, placed);
	else
		qp_.complete_send(r.index, r.opcode, status, placed);
}

void Requester::retire_front()
{
	while (!requests_.empty()) {
		Request &r = requests_.front();
		if (r.deferred) {
			r.status = load(r) ? qp_.execute_local(data_.scratch_send)
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
	/* The host may reuse its buffers. */
	data_.out.recall(Recall::of_qp(qp_.number));
	data_.stats.add(TERN_STAT_REQ_CQE_ERRORS);
	report(r, status);
	qp_.enter_error();
}

void Requester::abandon()
{
	std::swap(requests_, abandoned_);
	reset(next_psn_);
}

bool Requester::flush(unsigned &budget)
{
	while (!abandoned_.empty()) {
		if (!budget)
			return false;
		budget--;
		const Request r = abandoned_.front();
		abandoned_.pop_front();
		if (r.rendezvous)
			continue;
		data_.stats.add(TERN_STAT_REQ_CQE_FLUSHED);
		report(r, TERN_WC_WR_FLUSH_ERR);
	}
	flush_rendezvous();
	return true;
}

void Requester::stop()
{
	abandoned_.clear();
	reset(Psn());
}

} // namespace tern
