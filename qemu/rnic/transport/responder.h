/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The receiving half of a reliable connection (IBA vol. 1, 9.7.4 to 9.7.5): request packets
 * are checked and carried out in order of PSN as they arrive; what is to be said about them
 * waits in a queue for this QP's turn to send, where acknowledgements merge.
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

class RcQp;
enum class Sending : uint8_t;

class Responder {
public:
	explicit Responder(RcQp &qp) : qp_(qp) {}

	/** A request, of a QP that receives. */
	void receive(const Packet &packet);
	/** As Qp::deliver_burst(), requests in packets of the path MTU. */
	uint32_t receive_burst(const Packet &burst);
	/** Sends responses; true when it stopped only for @budget or the wire. */
	bool transmit(unsigned &budget);
	bool has_responses() const { return !responses_.empty(); }
	/** The pages that were waited for are there (@ok), or cannot be had. */
	void resume(bool ok);

	void reset(Psn rq_psn);
	/** Drops the responses not sent yet. */
	void abandon();
	Psn expected_psn() const { return expected_; }

private:
	enum class Message : uint8_t { None, Send, Write };

	struct Response {
		enum class Kind : uint8_t { Ack, Nak, Read, Atomic };
		Kind kind = Kind::Ack;
		uint8_t syndrome = 0;   /* Nak: the whole AETH syndrome */
		bool duplicate = false; /* answers a request that was executed before */
		Psn psn;                /* Read: of the next packet */
		uint32_t msn = 0;
		/* Read: what is left to send */
		Memory::Target target{};
		uint64_t va = 0;
		uint32_t rkey = 0;
		uint32_t length = 0;
		bool started = false;
		uint64_t original = 0; /* Atomic */
	};

	/** An atomic that was carried out, for a requester that did not hear of it (IBA 9.7.4.5.2).
	 */
	struct AtomicResult {
		bool valid = false;
		Psn psn;
		uint64_t original = 0;
	};

	/** What became of a request packet. */
	enum class Outcome : uint8_t {
		Done,
		Rnr,       /* no receive WQE: not executed, the requester is to try again */
		NeedPages, /* as Rnr, for want of pages */
		InvalidRequest,
		TooLong, /* a SEND for its receive WQE: an invalid request too */
		AccessError,
		BadInvalidate, /* the key of a SEND with invalidate: an access error too */
		OperationalError,
		Fatal, /* the QP is in the error state already */
	};

	void receive_expected(const Packet &packet);
	void receive_duplicate(const Packet &packet);
	void receive_ahead();
	void repeat_atomic(Psn psn);

	/** A SEND or WRITE, or a burst of it, was carried out. */
	void advance(const Packet &packet);
	bool in_sequence(const Packet &packet) const;
	bool size_valid(const Packet &packet) const;
	bool find_srq(const Packet &packet);
	Memory::Target target(const Packet &packet) const;
	Outcome execute(const Packet &packet);
	/** Takes a receive WQE for this message. */
	Outcome claim_recv();
	/** Takes the buffer that a SEND of @packet goes to; none when the card fetches its data. */
	Outcome claim_for_send(const Packet &packet);
	/* When the SRQ matches tags. */
	Outcome claim_slot(uint8_t opcode);
	Outcome claim_by_tag(const Packet &packet, TagList &tags);
	void take_eager(const Packet &packet, const headers::TagMatching &tag, uint32_t entry);
	void take_rendezvous(const Packet &packet, const headers::TagMatching &tag, uint32_t entry,
	                     const Sge &buffer);
	/** Takes the key back that a SEND names. */
	bool invalidate(const Packet &packet);
	Outcome execute_send(const Packet &packet);
	/** As execute_send(); false when it cannot be done in one go. */
	bool execute_send_burst(const Packet &burst);
	/** @size bytes of a SEND are where they belong. */
	Outcome end_send(const Packet &packet, size_t size);
	Outcome execute_write(const Packet &packet);
	Outcome begin_write(const Packet &packet);
	Outcome execute_read(const Packet &packet);
	Outcome execute_atomic(const Packet &packet);
	Outcome execute_atomic_write(const Packet &packet);
	Outcome execute_flush(const Packet &packet);
	/** Ends the claimed receive WQE with @status. */
	void complete_recv(const Packet &packet, uint8_t opcode, uint32_t byte_len,
	                   hw::tern_hw_cqe_status status);
	void reject(const Packet &packet, Outcome outcome);
	/** Whether a peer may @right (TERN_ACCESS_REMOTE_*) by this QP's and the region's rights.
	 */
	bool allowed(const Packet &packet, uint8_t right) const;

	void acknowledge();
	void push_nak(Psn psn, uint8_t syndrome);
	void push_rnr_nak(Psn psn);
	/** The packet of @psn needs pages; @recv: in the buffers of a receive WQE. */
	void wait_for_pages(Psn psn, bool recv);
	void forget_wait(Psn psn, uint32_t packets);
	/** Ends the READ at the front, and the QP, unless its pages are still to come. */
	void stop_read(bool need_pages);
	/** NAK Remote Access Error for @psn, and the end of the QP. */
	void fail_access(Psn psn);
	void push_read(const Packet &packet, bool duplicate);
	/** Answers ATOMIC WRITE and FLUSH. */
	void push_empty_read(Psn psn, bool duplicate);
	uint32_t outstanding_data() const;
	bool read_queued(Psn psn) const;
	void send_response(Response &response, unsigned &budget);
	Sending send_read(Response &response, unsigned &budget);
	Sending send_read_packet(Response &response);
	Wire::Lend lend_read_burst(const Response &response, uint32_t size);
	void begin_read_part(const Response &response, uint32_t size, Bth &bth, ExtHeaders &ext);
	void end_read_part(Response &response, uint32_t size);
	void send_aeth(Opcode opcode, const Response &response, uint8_t syndrome);
	uint8_t ack_syndrome();
	void finish_message();

	RcQp &qp_;
	RingBuffer<Response> responses_;
	std::array<AtomicResult, 16> atomics_{}; /* the latest, round-robin */
	size_t next_atomic_ = 0;
	Psn expected_;
	uint32_t msn_ = 0;      /* messages completed, 24 bits */
	bool nak_sent_ = false; /* since the last packet in sequence (IBA 9.7.5.2.8) */

	Message message_ = Message::None;
	uint64_t placed_ = 0; /* bytes of the message so far */
	Reth write_;          /* of the WRITE under way */
	uint32_t srqn_ = 0;   /* XRC: of the message under way */

	/** What fails when the pages cannot be had. */
	struct PageWait {
		Psn psn;
		bool recv;
	};
	std::optional<PageWait> page_wait_; /* until the host resumes us, or it went well since */
};

} // namespace tern
