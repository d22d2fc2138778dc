/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/queues/tag_queue.h"
#include "qemu/rnic/queues/wqe.h"

namespace tern {

/**
 * A receive queue that QPs share, in host memory: slots with WQEs, and a ring of the numbers of
 * those that are posted, in the order in which messages take them. A slot that was taken is its
 * QP's until that QP completes it. Once the rings could not be used, nothing more is taken.
 */
class SharedRecvQueue {
public:
	/** What CREATE_SRQ says, checked. */
	struct Config {
		uint32_t pdn = 0;
		uint32_t xrcdn = 0; /* 0: not an XRC SRQ */
		uint32_t cqn = 0;   /* XRC, tags: where its WQEs complete */
	};
	/** Where it lies; RESIZE_SRQ changes all but the stride. */
	struct Place {
		PageList pages;
		uint32_t ring_offset = 0;
		Iova record = 0;
		uint8_t log_size = 0;
		uint8_t log_stride = 0;
	};

	/** @tags: none when it matches none. */
	SharedRecvQueue(const Config &config, const Place &place,
	                std::optional<TagQueue> tags = std::nullopt)
	        : config_(config), place_(place), tags_(std::move(tags))
	{
	}

	const Config &config() const { return config_; }
	const Place &place() const { return place_; }
	uint32_t entries() const { return 1u << place_.log_size; }
	TagQueue *tags() { return tags_ ? &*tags_ : nullptr; }
	const TagQueue *tags() const { return tags_ ? &*tags_ : nullptr; }
	bool failed() const { return failed_; }

	enum class Take {
		Done,
		Empty,
		Failed, /* from now on the queue is dead (the first time) */
		Dead,
	};
	/** Takes the WQE that was posted first; @slot is its number. */
	Take take(Memory &memory, uint32_t &slot);
	/** Reads the WQE in a slot that was taken. */
	Fetch fetch(Memory &memory, uint32_t slot, RecvWqe &wqe) const;
	/** A slot could not be read. True the first time. */
	bool fail();

	/** @place holds the same slots and more; what is posted goes on in its ring. */
	void move_to(const Place &place) { place_ = place; }

	/** Whether fewer WQEs than the limit are posted; then there is no limit any more. */
	bool limit_reached(Memory &memory);
	uint32_t limit = 0; /* 0: none */

	uint32_t users = 0; /* QPs that were created with it */

private:
	/** Makes pi_ what the record says; false when that is not possible. */
	bool reload(Memory &memory);

	Config config_;
	Place place_;
	std::optional<TagQueue> tags_;
	uint32_t head_ = 0;
	uint32_t pi_ = 0; /* as last read from the record */
	bool failed_ = false;
};

} // namespace tern
