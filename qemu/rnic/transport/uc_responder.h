/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/formats/packet.h"
#include "tern/tern_hw.h"

namespace tern {

class UcQp;
struct DataPath;

/**
 * The responder of an unreliable connection (IBA vol. 1, 9.8.2.2). Losses are not reported: a PSN
 * gap drops the message in progress, and the next First or Only starts a new one. So each message
 * is received once and in order, or not at all.
 */
class UcResponder {
public:
	UcResponder(UcQp &qp, DataPath &data) : qp_(qp), data_(data) {}

	/** Receives a packet of the peer. The QP must be in a state that receives. */
	void receive(const Packet &packet);
	void reset(Psn rq_psn);
	Psn expected_psn() const { return expected_; }

private:
	enum class Message : uint8_t { None, Send, Write };

	/** Returns false if the packet's message must be dropped. */
	bool execute(const Packet &packet);
	bool in_sequence(const Packet &packet) const;
	bool execute_send(const Packet &packet);
	bool execute_write(const Packet &packet);
	bool begin_write(const Packet &packet);

	UcQp &qp_;
	DataPath &data_;
	Psn expected_;
	Message message_ = Message::None;
	uint64_t placed_ = 0; /* bytes of the message so far */
	Reth write_;          /* of the WRITE in progress */
};

} // namespace tern
