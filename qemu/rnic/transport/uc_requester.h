/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/queues/wqe.h"
#include "tern/tern_hw.h"

namespace tern {

class UcQp;
struct DataPath;

/**
 * The requester of an unreliable connection (IBA vol. 1, 9.8.2.1). There are no responses: a
 * request completes when its last packet is sent, and only one is in progress at a time.
 */
class UcRequester {
public:
	UcRequester(UcQp &qp, DataPath &data) : qp_(qp), data_(data) {}

	/** Sends packets; returns true if it stopped only for @budget. */
	bool transmit(unsigned &budget);
	/** The pages are present (@ok), or cannot be provided. */
	void resume(bool ok);
	/** Completes the request in progress as flushed. */
	void flush();
	void reset(Psn sq_psn);
	bool idle() const { return !request_; }
	Psn next_psn() const { return psn_; }

private:
	/** A work request between its first and its last packet. */
	struct Request {
		uint32_t index; /* block of the WQE */
		uint32_t length;
		uint32_t packet; /* the next to send */
		uint8_t opcode;
		uint8_t flags;
	};

	bool has_work();
	void start();
	hw::tern_hw_cqe_status check(const SendWqe &wqe) const;
	/** Makes scratch_send hold the WQE; false if the host has changed it. */
	bool load();
	/** None if the packet must wait, for pages or room. */
	std::optional<hw::tern_hw_cqe_status> send_packet();
	void end(hw::tern_hw_cqe_status status);

	UcQp &qp_;
	DataPath &data_;
	std::optional<Request> request_;
	bool loaded_ = false; /* see scratch_send */
	Psn psn_;             /* of the next packet */
};

} // namespace tern
