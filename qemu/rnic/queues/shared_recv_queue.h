/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/queues/tag_queue.h"
#include "qemu/rnic/queues/wqe.h"

namespace tern {

class Json;

/**
 * A receive queue shared by QPs, in host memory: slots with WQEs, and a ring with the numbers of
 * the posted slots in the order in which messages take them. A slot that was taken belongs to a QP
 * until the QP completes it. After a failure nothing more is taken.
 */
class SharedRecvQueue {
public:
	/** Parameters of CREATE_SRQ, validated. */
	struct Config {
		uint32_t pdn = 0;
		uint32_t xrcdn = 0; /* 0: not an XRC SRQ */
		uint32_t cqn = 0;   /* XRC, tag matching: CQ of its WQEs */
	};
	/** The location of the rings; RESIZE_SRQ changes all but the stride. */
	struct Place {
		PageList pages;
		uint32_t ring_offset = 0;
		Iova record = 0;
		uint8_t log_size = 0;
		uint8_t log_stride = 0;
	};

	/** @tags: none without tag matching. */
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
		Failed, /* reported once; the queue is unusable from now on */
		Dead,
	};
	/** Takes the oldest posted WQE; @slot is its number. */
	Take take(Memory &memory, uint32_t &slot);
	/** Reads the WQE in a taken slot. */
	Fetch fetch(Memory &memory, uint32_t slot, RecvWqe &wqe) const;
	/** A slot could not be read. Returns true the first time. */
	bool fail();

	/** @place holds the same slots and more; the posted WQEs are in its ring. */
	void move_to(const Place &place) { place_ = place; }

	/** Whether fewer WQEs than the limit are posted; clears the limit if so. */
	bool limit_reached(Memory &memory);
	uint32_t limit = 0; /* 0: none */
	void describe(Json &to) const;

	uint32_t users = 0; /* QPs created with it */

	/* DESTROY_SRQ of an XRC SRQ has begun: packets must not name it any more. */
	bool closing = false;
	uint32_t forgotten = 0; /* QPs before this slot of their table have no claim on it */

private:
	/** Reads pi_ from the record; false if the value is impossible. */
	bool reload(Memory &memory);

	Config config_;
	Place place_;
	std::optional<TagQueue> tags_;
	uint32_t head_ = 0;
	uint32_t pi_ = 0; /* as last read from the record */
	bool failed_ = false;
};

} // namespace tern
