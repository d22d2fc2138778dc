/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "qemu/rnic/environment.h"
#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/timers.h"
#include "tern/tern_hw.h"

namespace tern {

class Json;

/** A completion queue. The caller delivers the events that its functions report as due. */
class CompletionQueue {
public:
	/** The location of the ring; RESIZE_CQ changes it. */
	struct Place {
		PageList pages;
		Iova record = 0;
		uint8_t log_size = 0;

		uint32_t entries() const { return 1u << log_size; }
	};
	/** Event moderation: when an armed CQ raises its event, counted from the first CQE. */
	struct Moderation {
		uint16_t count = 0;  /* CQEs; 0: no limit */
		uint64_t period = 0; /* ns; 0: at once */
	};

	CompletionQueue(const Place &place, uint32_t eqn, uint32_t db_page)
	        : place_(place), eqn_(eqn), db_page_(db_page)
	{
	}

	const PageList &pages() const { return place_.pages; }
	uint32_t eqn() const { return eqn_; }
	uint32_t db_page() const { return db_page_; }
	bool failed() const { return failed_; }
	/** Time the event waits for more CQEs, ns. */
	uint64_t period() const { return moderation_.period; }

	enum class Outcome : uint8_t {
		Done,
		Event,  /* done, and an event is due */
		Later,  /* done; expire() must be called after period() */
		Failed, /* overrun or DMA fault, reported once; the CQ takes no more CQEs */
		Dead,   /* failed before */
	};

	/** Writes @cqe; its phase must be zero and is filled in. @solicited: counts for a
	 * solicited-only arm; a failed status always counts. */
	Outcome push(HostMemory &memory, TableCache &tables, const hw::tern_hw_cqe &cqe,
	             bool solicited);

	/** The host requests an event; CQEs that count and lie beyond @ci are included. */
	Outcome arm(uint32_t ci, bool solicited_only);
	/** Also applies to an event that already waits. */
	Outcome moderate(const Moderation &moderation);
	/** The moderation period has ended; true if an event is due. */
	bool expire();

	/**
	 * Moves the unconsumed CQEs to @place, up to @budget units of 16 CQEs. None if there is
	 * more to do: call it again with the same place. CQEs may be written in between. On any
	 * result but OK nothing has changed.
	 */
	std::optional<hw::tern_hw_aq_status> move_to(HostMemory &memory, TableCache &tables,
	                                             const Place &place, unsigned &budget);

	void describe(Json &to) const;

	uint32_t users = 0; /* QPs, SRQs and WQs that complete here */
	Timer timer;

private:
	enum class Armed : uint8_t { No, Solicited, Any };

	void reload(HostMemory &memory, Iova record);
	bool has_room(HostMemory &memory);
	Outcome notify(uint32_t count);

	/** A move to another ring, which is made to look as if the CQ had always been there. */
	struct Move {
		Place to;
		uint32_t ci;
		uint32_t copied;  /* end of the CQEs copied */
		uint32_t cleared; /* end of the entries marked as unwritten */

		uint32_t end() const { return ci + to.entries(); }
	};
	std::optional<hw::tern_hw_aq_status> advance_move(HostMemory &memory, TableCache &tables,
	                                                  unsigned &budget);
	bool copy_some(HostMemory &memory, TableCache &tables);
	bool clear_some(HostMemory &memory, TableCache &tables);

	Place place_;
	uint32_t eqn_;
	uint32_t db_page_;
	uint32_t pi_ = 0;
	uint32_t ci_ = 0;           /* as last read from the record */
	uint32_t solicited_pi_ = 0; /* just past the last CQE that counts as solicited */
	Armed armed_ = Armed::No;
	Moderation moderation_;
	uint32_t waiting_ = 0; /* CQEs whose event is delayed */
	bool failed_ = false;
	std::unique_ptr<Move> move_;
};

} // namespace tern
