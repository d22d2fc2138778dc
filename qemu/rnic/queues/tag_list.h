/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "qemu/rnic/memory/region.h"

namespace tern {

/**
 * The buffers that wait for messages of a tag, oldest first. The host looks after messages that
 * match none, so a buffer that it adds before it knows of all of those might be for one of them:
 * such a buffer is passed over until the host's count of unexpected messages is the card's.
 */
class TagList {
public:
	explicit TagList(uint32_t entries) : entries_(entries) {}

	/** Puts a buffer at the end. False when there is no entry of that number, or it is in
	 * use. */
	bool add(uint32_t entry, uint64_t tag, uint64_t mask, const Sge &buffer);
	enum class Removed {
		Done,
		NotListed,
		NoEntry,
	};
	Removed remove(uint32_t entry);

	/** Takes the first buffer for @tag off the list; its entry is in use until release(). */
	std::optional<uint32_t> match(uint64_t tag);
	const Sge &buffer(uint32_t entry) const { return entries_[entry].buffer; }
	void release(uint32_t entry) { entries_[entry].state = State::Free; }

	/** A message came that matched nothing. */
	void count_unexpected() { unexpected_++; }
	/** The host has dealt with @count of them. */
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
	std::vector<uint32_t> order_; /* of those that are listed */
	size_t active_ = 0;           /* so many of them, the first ones, can be matched */
	uint32_t unexpected_ = 0;
	uint32_t known_ = 0; /* of these, to the host */
};

} // namespace tern
