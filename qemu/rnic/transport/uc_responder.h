/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/formats/packet.h"
#include "tern/tern_hw.h"

namespace tern {

class UcQp;

/**
 * The receiving half of an unreliable connection (IBA vol. 1, 9.8.2.2): nobody is told of what is
 * lost. A gap in the PSNs ends the message under way; the next First or Only begins anew. So each
 * message arrives once and in order, or not at all.
 */
class UcResponder {
public:
	explicit UcResponder(UcQp &qp) : qp_(qp) {}

	/** A packet of the peer, of a QP that receives. */
	void receive(const Packet &packet);
	void reset(Psn rq_psn);
	/** The pages that a message was dropped for are there (@ok), or cannot be had. */
	void resume(bool ok);
	Psn expected_psn() const { return expected_; }

private:
	enum class Message : uint8_t { None, Send, Write };

	/** Whether the packet was taken; if not, its message is given up. */
	bool execute(const Packet &packet);
	bool in_sequence(const Packet &packet) const;
	bool execute_send(const Packet &packet);
	bool execute_write(const Packet &packet);
	bool begin_write(const Packet &packet);
	/** Takes a receive WQE, unless a message that was given up has left one. */
	bool claim_recv();
	void complete_recv(const Packet &packet, uint8_t opcode, uint64_t byte_len);
	/** Ends the claimed receive WQE, and the QP, with @status. */
	void fail_recv(bool solicited, hw::tern_hw_cqe_status status);

	UcQp &qp_;
	Psn expected_;
	Message message_ = Message::None;
	uint64_t placed_ = 0; /* bytes of the message so far */
	Reth write_;          /* of the WRITE under way */
};

} // namespace tern
