/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>

#include "qemu/rnic/environment.h"
#include "qemu/rnic/falsifier.h"
#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/stats.h"
#include "tern/tern_hw.h"

namespace tern {

class Json;

/* The events of each kind of object, which carry its number. */
inline constexpr hw::tern_hw_event kCqEvents[] = {hw::TERN_EVENT_COMP, hw::TERN_EVENT_CQ_ERR};
inline constexpr hw::tern_hw_event kQpEvents[] = {
        hw::TERN_EVENT_QP_FATAL,   hw::TERN_EVENT_QP_REQ_ERR, hw::TERN_EVENT_QP_ACCESS_ERR,
        hw::TERN_EVENT_COMM_EST,   hw::TERN_EVENT_SQ_DRAINED, hw::TERN_EVENT_LAST_WQE,
        hw::TERN_EVENT_PAGE_FAULT,
};
inline constexpr hw::tern_hw_event kSrqEvents[] = {hw::TERN_EVENT_SRQ_LIMIT,
                                                   hw::TERN_EVENT_SRQ_ERR};
inline constexpr hw::tern_hw_event kWqEvents[] = {hw::TERN_EVENT_WQ_FATAL};

/** Events that no event queue can take now, each type once for each object. */
using PendingEvents = std::set<std::pair<hw::tern_hw_event, uint32_t>>;

/**
 * One event queue with its interrupt vector. No event is lost: when the ring is full, events wait
 * until the host has made room, each type once per object.
 */
class EventQueue {
public:
	EventQueue(const PageList &pages, uint8_t log_size, uint32_t vector)
	        : pages_(pages), log_size_(log_size), vector_(vector)
	{
	}

	uint32_t vector() const { return vector_; }
	const PageList &pages() const { return pages_; }
	uint32_t users = 0; /* CQs */

	/** The parts of the card that an event queue uses. */
	struct Host {
		HostMemory &memory;
		TableCache &tables;
		Interrupts &interrupts;
		Stats &stats;
		Falsifier &falsifier;
		Observer &observer;
	};

	/** Writes an event now, or when there is room. Returns false if the ring cannot be written
	 * (fatal to the card). */
	bool post(Host &host, hw::tern_hw_event type, uint32_t id);
	/** Whether the ring can have the consumer index @ci. */
	bool possible(uint32_t ci) const { return pi_ - ci <= 1u << log_size_; }
	/** The host has consumed up to @ci, which is possible, and requests an interrupt for later
	 * events. Returns as post(). */
	bool arm(Host &host, uint32_t ci);
	/** The events that wait for room. */
	const PendingEvents &waiting() const { return waiting_; }
	/** Drops waiting @events of the destroyed object @id. */
	void forget(std::span<const hw::tern_hw_event> events, uint32_t id);
	void describe(Json &to) const;

private:
	bool full() const { return pi_ - ci_ == 1u << log_size_; }
	bool write(Host &host, hw::tern_hw_event type, uint32_t id);

	PageList pages_;
	uint8_t log_size_;
	uint32_t vector_;
	uint32_t pi_ = 0;
	uint32_t ci_ = 0;
	bool armed_ = false;
	PendingEvents waiting_; /* events that found no room */
};

} // namespace tern
