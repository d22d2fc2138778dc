/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <set>

#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/ports.h"
#include "qemu/rnic/stats.h"
#include "tern/tern_hw.h"

namespace tern {

class CompletionQueue;

/**
 * One event queue and its interrupt vector. When the ring is full, completion events wait with
 * their CQs until the host has made room; asynchronous events are dropped and counted.
 */
class EventQueue {
public:
	EventQueue(const PageList &pages, uint8_t log_size, uint32_t vector)
	        : pages_(pages), log_size_(log_size), vector_(vector)
	{
	}

	uint32_t vector() const { return vector_; }

	/** What an event queue needs of the card. */
	struct Host {
		HostMemory &memory;
		TableCache &tables;
		Interrupts &interrupts;
		Stats &stats;
	};

	/** Writes an asynchronous event. False when the ring cannot be written (card fatal). */
	bool post(Host &host, hw::tern_hw_event type, uint32_t id);
	/** Writes the completion event of CQ @cqn, now or when there is room. False as above. */
	bool post_completion(Host &host, uint32_t cqn);
	/** The host has consumed up to @ci and wants an interrupt for what comes after. False as
	 * above. */
	bool arm(Host &host, uint32_t ci);
	/** CQ @cqn goes: its waiting event is dropped. */
	void forget(uint32_t cqn);

private:
	bool full() const { return pi_ - ci_ == 1u << log_size_; }
	bool write(Host &host, hw::tern_hw_event type, uint32_t id);

	PageList pages_;
	uint8_t log_size_;
	uint32_t vector_;
	uint32_t pi_ = 0;
	uint32_t ci_ = 0;
	bool armed_ = false;
	std::set<uint32_t> waiting_; /* CQs with an event that found no room */
};

} // namespace tern
