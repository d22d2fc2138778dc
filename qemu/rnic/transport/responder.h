/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The responder of a reliable connection (IBA vol. 1, 9.7.4 to 9.7.5): request packets are checked
 * and executed in PSN order as they arrive; responses wait in a queue for the QP's turn to send,
 * where acknowledgements are merged.
 */
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/formats/tag_header.h"
#include "qemu/rnic/memory/region.h"
#include "qemu/rnic/queues/tag_list.h"
#include "qemu/rnic/ring_buffer.h"
#include "tern/tern_hw.h"

namespace tern {

class Json;
class RcQp;
struct DataPath;
enum class SendResult : uint8_t;

class Responder {
public:
	Responder(RcQp &qp, DataPath &data) : qp_(qp), data_(data) {}

	/** Receives a request. The QP must be in a state that receives. */
	void receive(const Packet &packet);
	/** As Qp::deliver_burst(), for requests with packets of the path MTU. */
	uint32_t receive_burst(const Packet &burst);
	/** Sends responses; returns true if it stopped only for @budget. */
	bool transmit(unsigned &budget);
	/** The pages are present (@ok), or cannot be provided. */
	void resume(bool ok);

	void reset(Psn rq_psn);
	/** Drops the READ data that was not sent yet, and sends the other responses while the wire
	 * has room. Responses that find no room stay in the queue. */
	void end();
	Psn expected_psn() const { return expected_; }
	void describe(Json &to) const;

private:
	enum class Message : uint8_t { None, Send, Write };

	struct Response {
		enum class Kind : uint8_t { Ack, Nak, Read, Atomic };
		Kind kind = Kind::Ack;
		uint8_t syndrome = 0;   /* Nak: the whole AETH syndrome */
		bool duplicate = false; /* for a request that was executed before */
		Psn psn;                /* Read: of the next packet */
		uint32_t msn = 0;
		/* Read: what remains to be sent */
		Memory::Target target{};
		uint64_t va = 0;
		uint32_t rkey = 0;
		uint32_t length = 0;
		bool started = false;
		bool is_read = false;  /* answers a READ, not an ATOMIC WRITE or a FLUSH */
		uint64_t original = 0; /* Atomic */
	};

	/** The result of an executed atomic, to answer a duplicate request (IBA 9.7.4.5.2). */
	struct AtomicResult {
		bool valid = false;
		Psn psn;
		uint64_t original = 0;
	};

	/** The result of a request packet. */
	enum class Outcome : uint8_t {
		Done,
		Rnr,       /* no receive WQE: not executed, the requester retries */
		NeedPages, /* as Rnr, because pages are absent */
		InvalidRequest,
		TooLong, /* SEND longer than its receive WQE or a message: an invalid request */
		AccessError,
		BadInvalidate, /* key of a SEND with invalidate: an access error */
		OperationalError,
		Fatal, /* a queue cannot be used */
	};

	void receive_expected(const Packet &packet);
	void receive_duplicate(const Packet &packet);
	void receive_ahead();
	void repeat_atomic(Psn psn);

	/** A SEND or WRITE, packet or burst, was executed. */
	void advance(const Packet &packet);
	bool in_sequence(const Packet &packet) const;
	bool find_srq(const Packet &packet);
	Memory::Target target(const Packet &packet) const;
	Outcome execute(const Packet &packet);
	/** Claims a receive WQE for the message. */
	Outcome claim_recv();
	/** Claims the buffer of a SEND; there is no claim if the card fetches the data. */
	Outcome claim_for_send(const Packet &packet);
	/* For SRQs with tag matching. */
	Outcome claim_slot(uint8_t opcode);
	Outcome claim_by_tag(const Packet &packet, TagList &tags);
	void take_eager(const Packet &packet, const headers::TagMatching &tag, uint32_t entry);
	void take_rendezvous(const Packet &packet, const headers::TagMatching &tag, uint32_t entry,
	                     const Sge &buffer);
	/** Invalidates the key in a SEND. */
	bool invalidate(const Packet &packet);
	Outcome execute_send(const Packet &packet);
	/** As execute_send(), for a burst; false if it must be delivered packet by packet. */
	bool execute_send_burst(const Packet &burst);
	/** @size bytes of a SEND have been placed. */
	Outcome end_send(const Packet &packet, size_t size);
	Outcome execute_write(const Packet &packet);
	Outcome begin_write(const Packet &packet);
	Outcome execute_read(const Packet &packet);
	Outcome execute_atomic(const Packet &packet);
	Outcome execute_atomic_write(const Packet &packet);
	Outcome execute_flush(const Packet &packet);
	void reject(const Packet &packet, Outcome outcome);
	/** Whether the QP takes requests that need @right (TERN_ACCESS_*). */
	bool supports(uint8_t right) const;
	/** Whether key and range of a READ or WRITE allow @right. */
	bool allowed(const Packet &packet, uint8_t right) const;

	Psn last_executed() const { return expected_ + Psn::kMask; /* expected_ - 1 */ }
	/** Acknowledges all PSNs up to @psn. */
	void acknowledge(Psn psn);
	Response make_nak(Psn psn, uint8_t syndrome);
	Response make_rnr_nak(Psn psn);
	void push_nak(Psn psn, uint8_t syndrome) { responses_.push_back(make_nak(psn, syndrome)); }
	/** Drops the responses whose (next) PSN is @from or later. */
	void drop_responses(Psn from);
	/** The packet with @psn needs pages; @recv: of the buffers of a receive WQE. @op: as
	 * fail_access(). */
	void wait_for_pages(Psn psn, bool recv, uint32_t op);
	void clear_wait(Psn psn, uint32_t packets);
	/** Stops the READ at the front, whose memory cannot be read. Moves the QP to ERR, unless
	 * the READ waits for pages or was answered before. */
	void stop_read(bool need_pages);
	void stop_repeated_read(bool need_pages);
	/** Sends NAK Remote Access Error for @psn and moves the QP to ERR. @op: what the request
	 * is counted as (TERN_COMP_*); 0: as nothing. */
	void fail_access(Psn psn, uint32_t op);
	Response make_read(const Packet &packet, bool duplicate) const;
	void push_read(const Packet &packet);
	/** The response to ATOMIC WRITE and FLUSH. */
	Response make_empty_read(Psn psn, bool duplicate) const;
	void push_again(const Response &again);
	Psn end_of(const Response &response) const;
	uint32_t outstanding_data() const;
	bool read_queued(Psn psn) const;
	bool was_answered(Psn end) const;
	void send_response(Response &response, unsigned &budget);
	SendResult send_read(Response &response, unsigned &budget);
	SendResult send_read_packet(Response &response);
	Wire::Lend lend_read_burst(const Response &response, uint32_t size);
	void begin_read_part(const Response &response, uint32_t size, Bth &bth, ExtHeaders &ext);
	void end_read_part(Response &response, uint32_t size);
	bool may_lend(const Response &response) const;
	void count_read(const Response &response, Psn first, uint32_t size);
	/** False if there is no room. */
	bool send_aeth(Opcode opcode, const Response &response, uint8_t syndrome);
	uint8_t ack_syndrome();
	void finish_message();

	RcQp &qp_;
	DataPath &data_;
	RingBuffer<Response> responses_;
	std::array<AtomicResult, 16> atomics_{}; /* most recent results, round-robin */
	size_t next_atomic_ = 0;
	Psn expected_;
	uint32_t msn_ = 0;        /* completed messages, 24 bits */
	bool nak_sent_ = false;   /* since the last packet in sequence (IBA 9.7.5.2.8) */
	Psn last_answered_;       /* of the last executed request with a response of its own */
	Psn reads_end_;           /* the PSN after the last READ response sent, repetitions aside */
	uint64_t read_bytes_ = 0; /* sent of the READ that is being answered */

	Message message_ = Message::None;
	uint64_t placed_ = 0; /* bytes of the message so far */
	Reth write_;          /* of the WRITE in progress */
	uint32_t srqn_ = 0;   /* XRC: of the message in progress */

	/** The packet to reject if the pages cannot be provided. */
	struct PageWait {
		Psn psn;
		bool recv;
		uint32_t op; /* as of fail_access() */
	};
	std::optional<PageWait> page_wait_; /* until resumed, or the packet succeeds */
};

} // namespace tern
