/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/ports.h"
#include "tern/tern_hw.h"

namespace tern {

/** A completion queue. Who calls push() or arm() delivers the event that they may ask for. */
class CompletionQueue {
public:
	CompletionQueue(const PageList &pages, uint8_t log_size, Iova record, uint32_t eqn,
	                uint32_t db_page)
	        : pages_(pages), log_size_(log_size), record_(record), eqn_(eqn), db_page_(db_page)
	{
	}

	uint32_t eqn() const { return eqn_; }
	uint32_t db_page() const { return db_page_; }
	bool failed() const { return failed_; }

	enum class Push {
		Done,
		Event,  /* written, and the host asked for an event */
		Failed, /* overrun or DMA fault; from now on the CQ takes nothing (the first time)
		         */
		Dead,   /* it had failed before */
	};

	/** Writes @cqe (the phase is filled in). @solicited: counts for a solicited-only arm; a
	 * failed status always does. */
	Push push(HostMemory &memory, TableCache &tables, hw::tern_hw_cqe cqe, bool solicited);

	/** True when the event is due at once: a CQE that counts lies beyond @ci already. */
	bool arm(uint32_t ci, bool solicited_only);

	uint32_t users = 0; /* QPs that complete here */

private:
	enum class Armed : uint8_t { No, Solicited, Any };

	bool has_room(HostMemory &memory);

	PageList pages_;
	uint8_t log_size_;
	Iova record_;
	uint32_t eqn_;
	uint32_t db_page_;
	uint32_t pi_ = 0;
	uint32_t ci_ = 0;           /* as last read from the record */
	uint32_t solicited_pi_ = 0; /* just past the last CQE that counts as solicited */
	Armed armed_ = Armed::No;
	bool failed_ = false;
};

} // namespace tern
