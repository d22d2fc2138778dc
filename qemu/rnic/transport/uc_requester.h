/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/queues/wqe.h"
#include "tern/tern_hw.h"

namespace tern {

class UcQp;

/**
 * The sending half of an unreliable connection (IBA vol. 1, 9.8.2.1): nothing comes back, so a
 * request is complete when its last packet is on its way, and only one is under way at a time.
 */
class UcRequester {
public:
	explicit UcRequester(UcQp &qp) : qp_(qp) {}

	/** Sends packets while it may; true when it stopped only for @budget or the wire. */
	bool transmit(unsigned &budget);
	/** The pages that were waited for are there (@ok), or cannot be had. */
	void resume(bool ok);
	/** Completes the request under way as flushed. */
	void flush();
	void reset(Psn sq_psn);
	bool idle() const { return !request_; }
	Psn next_psn() const { return psn_; }

private:
	/** A work request between its first packet and its last. */
	struct Request {
		uint32_t index; /* of the block where the WQE starts */
		uint32_t length;
		uint32_t packet; /* the next one */
		uint8_t opcode;
		uint8_t flags;
	};

	bool has_work();
	void start();
	hw::tern_hw_cqe_status check(const SendWqe &wqe) const;
	/** Makes scratch_send of the card hold the WQE again; false when the host changed it. */
	bool load();
	/** Nothing when the packet has to wait for pages. */
	std::optional<hw::tern_hw_cqe_status> send_packet();
	void end(hw::tern_hw_cqe_status status);

	UcQp &qp_;
	std::optional<Request> request_;
	bool loaded_ = false; /* within one turn */
	Psn psn_;             /* of the next packet */
};

} // namespace tern
