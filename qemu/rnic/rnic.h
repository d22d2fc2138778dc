/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One engine of the card as its embedder sees it (most cards have one): a deterministic,
 * single-threaded state machine driven by events. The embedder passes in register and doorbell
 * writes, frames and link changes, and calls run() while it returns true, then again at
 * next_deadline(). All calls come from one thread (or are serialised by the embedder).
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "qemu/rnic/config.h"
#include "qemu/rnic/congestion/parameters.h"
#include "qemu/rnic/environment.h"

namespace tern {

struct Card;

class Rnic {
public:
	using Config = CardConfig;

	Rnic(const Config &config, const Ports &ports);
	~Rnic();
	Rnic(const Rnic &) = delete;
	Rnic &operator=(const Rnic &) = delete;

	/** Returns to the power-on state (FLR, bus reset). The link state and the content of device
	 * memory are kept. */
	void reset();

	/** BAR 0. @offset must be 4-byte aligned; unknown registers read as zero. */
	uint32_t read_register(uint32_t offset) const;
	/** Returns whether the write has reset the card. */
	bool write_register(uint32_t offset, uint32_t value);

	/** BAR 2: an 8-byte store at @offset of doorbell page @page. Invalid ones are dropped and
	 * counted. */
	void doorbell(uint32_t page, uint32_t offset, uint64_t value);

	/** A frame (without FCS) arrived. It is processed before the call returns. */
	void receive(std::span<const std::byte> frame);

	/**
	 * A lent packet or burst arrived (Wire::lend()): @head has all bytes before the payload,
	 * and may include the payload. Both are used only during the call. The payload may change
	 * meanwhile, and Wire::recall() may redirect its pieces to copies of the same size; @head
	 * must not change.
	 */
	void receive(std::span<const std::byte> head,
	             std::span<const std::span<const std::byte>> payload, uint32_t segment = 0);

	/** Takes back all lent payload: nobody reads the host's memory when this returns. */
	void recall();

	/** Lent packets for this card were revoked by their sender. */
	void lost(uint32_t packets);

	/** @destination has room again after it had none for a frame. */
	void wire_ready(Wire::Destination destination = 0);

	void set_link(bool up);

	/** Sets the congestion control; false, and no change, if a parameter is out of range. A
	 * reset restores the default. */
	bool set_congestion(const CongestionParameters &parameters);

	/** Faults that the embedder injects. They return false if there is no QP @qpn that could
	 * fail, or no such QP. */
	bool fail_qp(uint32_t qpn);
	/** @rate: kb/s at most, until the QP is reset; 0: no limit. */
	bool slow_qp(uint32_t qpn, uint32_t rate);
	/** While @hold is set, admin commands stay unanswered, after @answers more answers. A
	 * reset ends it. */
	void hold_commands(bool hold, uint32_t answers);
	/** Answers the @nth admin command from now on that creates or changes an object with
	 * NO_RESOURCE; 0: none. A reset ends it. */
	void refuse_command(uint32_t nth);
	/** Changes one of @every CQEs, EQEs and completions of commands, as Falsifier does; 0:
	 * none. A reset ends it. */
	void falsify(uint32_t every, uint32_t seed);

	/**
	 * Processes admin commands and timers that are due, and sends packets. Uses up to about
	 * @budget units of time (Sender::transmit()). Returns true if there is more to do now.
	 */
	bool run(unsigned budget);

	/** The time (of the clock port) at which run() must be called for a timer; none if no timer
	 * is set. */
	std::optional<uint64_t> next_deadline() const;

	/** The card's state as JSON, for people who look for a reason; control/describe.cc has the
	 * members. Lists have @most objects at most, or of the QPs only @qpn. */
	std::string describe(std::optional<uint32_t> qpn, size_t most = 1000) const;

private:
	/** Whether a driver has enabled the card, and it has not stopped by itself. */
	bool works() const;

	std::unique_ptr<Card> card_;
};

} // namespace tern
