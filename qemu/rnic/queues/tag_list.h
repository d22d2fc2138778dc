/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "qemu/rnic/memory/region.h"

namespace tern {

/**
 * The list of buffers that wait for tagged messages, oldest first. The host itself looks through
 * messages that matched none (unexpected ones), so a buffer it adds before it has seen all of those
 * might belong to one of them. Such a buffer is skipped until the host's count of unexpected
 * messages equals the card's.
 */
class TagList {
public:
	explicit TagList(uint32_t entries) : entries_(entries) {}

	/** Appends a buffer. Returns false if the entry does not exist or is in use. */
	bool add(uint32_t entry, uint64_t tag, uint64_t mask, const Sge &buffer);
	enum class Removed {
		Done,
		NotListed,
		NoEntry,
	};
	Removed remove(uint32_t entry);

	/** Removes and returns the first buffer for @tag; its entry stays in use until
	 * release(). */
	std::optional<uint32_t> match(uint64_t tag);
	const Sge &buffer(uint32_t entry) const { return entries_[entry].buffer; }
	void release(uint32_t entry) { entries_[entry].state = State::Free; }

	/** A message matched no buffer. */
	void count_unexpected() { unexpected_++; }
	/** The host has processed @count unexpected messages. */
	void synchronize(uint32_t count);
	bool synchronized() const { return known_ == unexpected_; }

private:
	enum class State : uint8_t {
		Free,
		Listed,
		Matched,
	};
	struct Entry {
		uint64_t tag = 0;
		uint64_t mask = 0;
		Sge buffer;
		State state = State::Free;
	};

	std::vector<Entry> entries_;
	std::vector<uint32_t> order_; /* the listed entries */
	size_t active_ = 0;           /* how many of them, from the first on, can be matched */
	uint32_t unexpected_ = 0;
	uint32_t known_ = 0; /* unexpected messages that the host has seen */
};

} // namespace tern
