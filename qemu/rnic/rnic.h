/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An engine of the card, mostly the only one, as its embedder sees it: a deterministic,
 * single-threaded event machine. The embedder hands in register and doorbell writes, frames and
 * link changes, and calls run() until there is no more to do now, then again at next_deadline().
 * All calls come from one thread (or are serialised by the embedder).
 */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "qemu/rnic/ports.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;

class Rnic {
public:
	struct Config {
		std::array<uint8_t, 6> mac{};
		/* Which of how many engines of the card this is: TERN_ENGINE_SHIFT. */
		uint32_t engine = 0;
		uint32_t engines = 1;
		uint32_t vectors = 8;
		uint32_t doorbell_pages = 2048;
		uint32_t link_speed_mbps = 100000;
		/* BAR 5, which the embedder holds and shows to the host; page-aligned, or empty */
		std::span<std::byte> device_memory{};

		/** What all numbers of objects begin with. */
		uint32_t base() const { return engine << hw::TERN_ENGINE_SHIFT; }
	};

	Rnic(const Config &config, const Ports &ports);
	~Rnic();
	Rnic(const Rnic &) = delete;
	Rnic &operator=(const Rnic &) = delete;

	/** Back to the state after power-on (FLR, bus reset). The link stays as it is, and what is
	 * in the device memory. */
	void reset();

	/** BAR 0. @offset must be 4-byte aligned; an unknown register reads as zero. */
	uint32_t read_register(uint32_t offset) const;
	void write_register(uint32_t offset, uint32_t value);

	/** BAR 2: an 8-byte store at @offset of doorbell page @page. Bad ones are dropped and
	 * counted. */
	void doorbell(uint32_t page, uint32_t offset, uint64_t value);

	/** A frame (without FCS) arrived. It is dealt with before the call returns. */
	void receive(std::span<const std::byte> frame);

	/**
	 * A RoCE packet without ICRC, or a burst, arrived, as Wire::lend() sends it: @head is all
	 * that goes before its payload, and may hold that, too. Both are not needed any more when
	 * the call returns. The payload may change meanwhile, and Wire::recall() may make each of
	 * its pieces refer to other memory, of the same size; @head may not change.
	 */
	void receive(std::span<const std::byte> head,
	             std::span<const std::span<const std::byte>> payload, uint32_t segment = 0);

	/** The wire takes frames again after it refused one. */
	void wire_ready();

	void set_link(bool up);

	/**
	 * Does work that is due: doorbells, admin commands, timers, packets to send; at most
	 * about @budget packets. True when there is more to do at once.
	 */
	bool run(unsigned budget);

	/** When run() must be called next for a timer, by the clock port; none when no timer is
	 * set. */
	std::optional<uint64_t> next_deadline() const;

private:
	std::unique_ptr<Card> card_;
};

} // namespace tern
