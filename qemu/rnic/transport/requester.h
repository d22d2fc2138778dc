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
#include "qemu/rnic/transport/rendezvous.h"

namespace tern {

class RcQp;
enum class Sending : uint8_t;

class Requester {
public:
	explicit Requester(RcQp &qp) : qp_(qp) {}

	/** Sends request packets while it may; true when it stopped only for @budget or the wire.
	 */
	bool transmit(unsigned &budget);
	/** A response, of a QP that takes responses. */
	void receive(const Packet &packet);
	/** As Qp::deliver_burst(), READ responses in packets of the path MTU. */
	uint32_t receive_burst(const Packet &burst);
	void on_timer(uint64_t now);
	/** The pages that were waited for are there (@ok), or cannot be had. */
	void resume(bool ok);

	/** Fetches the data of @rendezvous as soon as this QP may send. */
	void fetch(const Rendezvous &rendezvous);
	/** Flushes the tags whose data was not fetched yet. */
	void flush_rendezvous();

	/** Flushes all requests under way, oldest first. */
	void flush();
	void reset(Psn sq_psn);
	/** Nothing is under way. */
	bool idle() const { return requests_.empty(); }
	Psn next_psn() const { return next_psn_; }

private:
	/** A work request from its first packet to its completion. Two in a cache line. */
	struct Request {
		uint32_t index = 0; /* of the block where the WQE starts; of a rendezvous its
		                       number */
		uint32_t length = 0;
		uint32_t packets = 0;   /* PSNs it takes; those of its responses for a READ */
		uint32_t responses = 0; /* response packets that arrived */
		uint32_t ssn = 0;       /* send sequence number, 24 bits, compared as PSNs are */
		Psn first;
		uint8_t opcode = 0;
		uint8_t flags = 0;
		bool rendezvous = false; /* the card's own: a READ, or the FIN */
		bool local = false;      /* an operation on keys of this card: no packets */
		bool deferred = false;   /* ... that takes effect when it is the oldest */
		/* a local error found in it */
		hw::tern_hw_cqe_status status : 8 = hw::TERN_WC_SUCCESS;

		Psn end() const { return first + packets; }
		bool expects_response() const
		{
			return opcode == hw::TERN_OP_READ || opcode == hw::TERN_OP_CMP_SWAP ||
			       opcode == hw::TERN_OP_FETCH_ADD ||
			       opcode == hw::TERN_OP_ATOMIC_WRITE || opcode == hw::TERN_OP_FLUSH;
		}
		bool takes_recv() const;
	};
	static_assert(sizeof(Request) == 32);

	enum class Step {
		Sent,
		Stalled, /* until a response, a timer or a post */
		Blocked, /* until the wire takes frames */
	};

	Step send_next(unsigned &budget);
	bool start_request();
	bool start_posted();
	bool start_rendezvous();
	/** Makes @wqe the youngest request, @r. */
	void enter(Request &r, const SendWqe &wqe);
	Memory::Domain domain(const Request &r) const;
	hw::tern_hw_cqe_status check_request(const Request &r, const SendWqe &wqe) const;
	void start_local(Request &r, const SendWqe &wqe);
	void skip_local();
	bool must_wait(const SendWqe &wqe) const;
	bool exceeds_limits(const SendWqe &wqe) const;
	bool may_send(const Request &r, uint32_t packet) const;
	bool has_credit(const Request &r, uint32_t packet) const;
	/** Sends @packet, and perhaps as many after it as @budget and all that a request is held to
	 * allow. */
	Step send_packets(Request &r, uint32_t packet, unsigned &budget);
	/** @packets more of @r, or its READ request, have gone. */
	void sent_packets(const Request &r, uint32_t packets);
	bool covered(const Request &r) const;
	/** Makes scratch_send of the card hold the WQE of @r; false when that is no longer the one
	 * it was. */
	bool load(const Request &r);
	Sending send_request_packet(Request &r, uint32_t packet, const SendWqe &wqe);
	/** The next packet was sent before. Then it is not lent: a host that takes back its memory
	 * again and again, and with it what is on its way, would get nowhere. */
	bool sends_again() const { return next_psn_ - sent_ < 0; }
	/** How many packets from @packet on may go as a burst. */
	uint32_t burst_of(const Request &r, uint32_t packet, const SendWqe &wqe,
	                  unsigned budget) const;
	Wire::Lend lend_burst(const Request &r, uint32_t packet, uint32_t packets,
	                      const SendWqe &wqe);
	/** What @packets of a SEND or WRITE from @packet on, as one, say of themselves; the size
	 * of their payload. */
	size_t describe(const Request &r, uint32_t packet, uint32_t packets, const SendWqe &wqe,
	                Bth &bth, ExtHeaders &ext) const;
	/** As describe(), of what has a response of its own; @packet: of a READ the response asked
	 * for first. */
	size_t describe_data_request(const Request &r, uint32_t packet, const SendWqe &wqe,
	                             Bth &bth, ExtHeaders &ext) const;
	/** @psn: of @packet. */
	bool wants_ack(const Request &r, uint32_t packet, Psn psn) const;

	void receive_ack(const Packet &packet);
	void receive_nak(const Packet &packet);
	void receive_rnr(const Packet &packet);
	void receive_read_response(const Packet &packet);
	void receive_atomic_ack(const Packet &packet);
	Request *expect_data(const Packet &packet, bool atomic);
	bool shape_matches(const Request &r, const Packet &packet) const;
	void after_response();
	bool place(Request &r, uint64_t offset, const Payload &data);
	void update_credits(const Aeth &aeth);
	/** The packet of @psn, sent or received, needs pages. */
	void wait_for_pages(Psn psn);

	/** Takes all before @end as acknowledged; false when a response that had to come first is
	 * missing. */
	bool acknowledge(Psn end);
	void progress(Psn una);
	void complete_front();
	/** Tells the host that @r, which is no longer under way, has ended. */
	void report(const Request &r, hw::tern_hw_cqe_status status);
	void report_rendezvous(const Request &r, hw::tern_hw_cqe_status status, uint32_t placed);
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
	int32_t window_ = 0;           /* how many packets may be in flight */
	Psn end_;                      /* just past the PSNs of all started requests */
	size_t cursor_ = 0;            /* the request of next_psn_ */
	uint32_t data_requests_ = 0;   /* that have a response of their own, under way */
	uint32_t ssn_ = 0;
	RendezvousQueue rendezvous_;
	bool posted_first_ = false; /* a rendezvous was started last: it is the host's turn */

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
