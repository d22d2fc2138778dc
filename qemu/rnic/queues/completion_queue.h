/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/ports.h"
#include "qemu/rnic/timers.h"
#include "tern/tern_hw.h"

namespace tern {

/** A completion queue. Who calls it delivers the event that may be due then. */
class CompletionQueue {
public:
	/** Where it lies; RESIZE_CQ changes that. */
	struct Place {
		PageList pages;
		Iova record = 0;
		uint8_t log_size = 0;

		uint32_t entries() const { return 1u << log_size; }
	};
	/** When an armed CQ raises its event, counted from the first CQE. */
	struct Moderation {
		uint16_t count = 0;  /* CQEs; 0: as many as come */
		uint64_t period = 0; /* ns; 0: at once */
	};

	CompletionQueue(const Place &place, uint32_t eqn, uint32_t db_page)
	        : place_(place), eqn_(eqn), db_page_(db_page)
	{
	}

	uint32_t eqn() const { return eqn_; }
	uint32_t db_page() const { return db_page_; }
	bool failed() const { return failed_; }
	/** How long the event waits for more CQEs, ns. */
	uint64_t period() const { return moderation_.period; }

	enum class Outcome : uint8_t {
		Done,
		Event,  /* done, and the event is due */
		Later,  /* done, and expire() is to be called after period() */
		Failed, /* overrun or DMA fault; from now on the CQ takes nothing (the first time)
		         */
		Dead,   /* it had failed before */
	};

	/** Writes @cqe (its phase, which is zero, is filled in). @solicited: counts for a
	 * solicited-only arm; a failed status always does. */
	Outcome push(HostMemory &memory, TableCache &tables, const hw::tern_hw_cqe &cqe,
	             bool solicited);

	/** The host wants an event; CQEs that count and lie beyond @ci already are the first. */
	Outcome arm(uint32_t ci, bool solicited_only);
	/** The event that waits is held to this, too. */
	Outcome moderate(const Moderation &moderation);
	/** The period is over; true when an event is due. */
	bool expire();

	/** Moves to @place, with what the host has not consumed. Anything but OK changes nothing.
	 */
	hw::tern_hw_aq_status move_to(HostMemory &memory, TableCache &tables, const Place &place);

	uint32_t users = 0; /* QPs, SRQs and WQs that complete here */
	Timer timer;

private:
	enum class Armed : uint8_t { No, Solicited, Any };

	void reload(HostMemory &memory, Iova record);
	bool has_room(HostMemory &memory);
	Outcome notify(uint32_t count);
	bool copy(HostMemory &memory, TableCache &tables, const Place &to) const;

	Place place_;
	uint32_t eqn_;
	uint32_t db_page_;
	uint32_t pi_ = 0;
	uint32_t ci_ = 0;           /* as last read from the record */
	uint32_t solicited_pi_ = 0; /* just past the last CQE that counts as solicited */
	Armed armed_ = Armed::No;
	Moderation moderation_;
	uint32_t waiting_ = 0; /* CQEs for which the event is put off */
	bool failed_ = false;
};

} // namespace tern
