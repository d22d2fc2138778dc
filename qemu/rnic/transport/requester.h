/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sending half of a reliable connection (IBA vol. 1, 9.7): work requests become packets,
 * responses become completions. Retransmission is go-back-N; the WQE is read again from
 * the send queue whenever its packets are made, so that nothing of it is kept but a Request.
 */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/queues/wqe.h"
#include "qemu/rnic/ring_buffer.h"

namespace tern {

class RcQp;

class Requester {
public:
	explicit Requester(RcQp &qp) : qp_(qp) {}

	/** Sends request packets while it may; true when it stopped only for @budget or the wire.
	 */
	bool transmit(unsigned &budget);
	/** A response, of a QP that takes responses. */
	void receive(const Packet &packet);
	void on_timer(uint64_t now);
	/** The pages that were waited for are there (@ok), or cannot be had. */
	void resume(bool ok);

	/** Flushes all requests under way, oldest first. */
	void flush();
	void reset(Psn sq_psn);
	/** Nothing is under way. */
	bool idle() const { return requests_.empty(); }
	Psn next_psn() const { return next_psn_; }

private:
	/** A work request from its first packet to its completion. */
	struct Request {
		uint32_t index = 0; /* of the block where the WQE starts */
		uint32_t length = 0;
		uint32_t packets = 0;   /* PSNs it takes; those of its responses for a READ */
		uint32_t responses = 0; /* response packets that arrived */
		uint32_t ssn = 0;       /* send sequence number, 24 bits */
		Psn first;
		uint8_t opcode = 0;
		uint8_t flags = 0;
		bool local = false;    /* an operation on keys of this card: no packets */
		bool deferred = false; /* ... that takes effect when it is the oldest */
		hw::tern_hw_cqe_status status = hw::TERN_WC_SUCCESS; /* a local error found in it */

		Psn end() const { return first + packets; }
		bool expects_response() const;
		bool takes_recv() const;
	};

	enum class Step {
		Sent,
		Stalled, /* until a response, a timer or a post */
		Blocked, /* until the wire takes frames */
	};

	Step send_next();
	bool start_request();
	hw::tern_hw_cqe_status check_request(const SendWqe &wqe) const;
	void start_local(Request &r, const SendWqe &wqe);
	void skip_local();
	bool must_wait(const SendWqe &wqe) const;
	bool may_send(const Request &r, uint32_t packet) const;
	bool has_credit(const Request &r, uint32_t packet) const;
	Step send_packet(Request &r, uint32_t packet);
	bool covered(const Request &r) const;
	/** Makes scratch_send of the card hold the WQE of @r; false when that is no longer the one
	 * it was. */
	bool load(const Request &r);
	Access send_request_packet(Request &r, uint32_t packet, const SendWqe &wqe);
	bool wants_ack(const Request &r, uint32_t packet) const;

	void receive_ack(const Packet &packet);
	void receive_nak(const Packet &packet);
	void receive_rnr(const Packet &packet);
	void receive_read_response(const Packet &packet);
	void receive_atomic_ack(const Packet &packet);
	Request *expect_data(const Packet &packet, bool atomic);
	bool shape_matches(const Request &r, const Packet &packet) const;
	bool place(Request &r, uint64_t offset, std::span<const std::byte> data);
	void update_credits(const Aeth &aeth);
	/** The packet of @psn, sent or received, needs pages. */
	void wait_for_pages(Psn psn);

	/** Takes all before @end as acknowledged; false when a response that had to come first is
	 * missing. */
	bool acknowledge(Psn end);
	void progress(Psn una);
	void complete_front();
	/** Ends the oldest request with @status, and the QP with it. */
	void fail(hw::tern_hw_cqe_status status);
	/** Now is the time to tell of the oldest request's local error, and to carry out and
	 * complete local operations. */
	void settle_front();
	void fail_at(Psn psn);
	void implied_nak();
	bool spend_retry();
	void seek(Psn psn);
	void arm_timer();

	RcQp &qp_;
	std::optional<uint32_t>
	        loaded_; /* index of our WQE in scratch_send, within one call from outside */
	RingBuffer<Request> requests_; /* started and not completed, oldest first */
	Psn una_;                      /* oldest PSN not acknowledged */
	Psn next_psn_;                 /* to send next */
	Psn sent_;                     /* just past the highest PSN sent so far */
	Psn end_;                      /* just past the PSNs of all started requests */
	size_t cursor_ = 0;            /* the request of next_psn_ */
	uint32_t data_requests_ = 0;   /* READs, atomics and ATOMIC_WRITEs under way */
	uint32_t ssn_ = 0;

	bool credits_known_ = false; /* the responder does end-to-end flow control */
	uint32_t limit_ssn_ = 0;     /* last message that has a receive WQE for sure */

	uint8_t retries_left_ = 0;
	uint8_t rnr_retries_left_ = 0;
	bool nak_implied_ =
	        false; /* went back for a lost response; later ones of that batch mean nothing */
	uint64_t timeout_at_ = UINT64_MAX;
	uint64_t rnr_until_ = 0;        /* 0 when not waiting */
	std::optional<Psn> page_wait_;  /* nothing is sent until the host resumes us */
	bool response_dropped_ = false; /* for want of pages: that of una_ */
};

} // namespace tern
