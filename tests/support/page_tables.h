/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a driver does to tell a card where a buffer is: leaf pages and the tables above them. */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tern/tern_hw.h"
#include "tests/support/fake_host.h"

namespace tern::test {

/** A page list in the making, in which any leaf page may be set and the others are missing. Of one
 * on demand the bits of leaf entries are the caller's. */
class PageTables {
public:
	PageTables(FakeMemory &memory, unsigned levels, unsigned page_shift = 12,
	           bool on_demand = false)
	        : memory_(memory), levels_(levels), page_shift_(page_shift),
	          inner_bits_(on_demand ? TERN_PAGE_PRESENT : 0), root_(new_table())
	{
	}

	/** Leaf page @page is at @iova. */
	void set(uint64_t page, Iova iova) { memory_.put(entry(page), Le<uint64_t>(iova)); }

	/** Where the entry of leaf page @page is; makes the tables that lead to it. */
	Iova entry(uint64_t page)
	{
		Iova table = root_;
		for (unsigned level = levels_ - 1; level > 0; level--) {
			const Iova slot = slot_of(table, page, level);
			if (memory_.get<Le<uint64_t>>(slot).get() == 0)
				memory_.put(slot, Le<uint64_t>(new_table() | inner_bits_));
			table = memory_.get<Le<uint64_t>>(slot).get() & ~inner_bits_;
		}
		return slot_of(table, page, 0);
	}

	hw::tern_hw_pages pages() const
	{
		hw::tern_hw_pages pages{};
		pages.iova = root_;
		pages.levels = static_cast<uint8_t>(levels_);
		pages.page_shift = static_cast<uint8_t>(page_shift_);
		return pages;
	}

private:
	static Iova slot_of(Iova table, uint64_t page, unsigned level)
	{
		return table +
		       (page >> level * 9 & (hw::TERN_TABLE_ENTRIES - 1)) * sizeof(uint64_t);
	}
	Iova new_table() { return memory_.alloc(hw::TERN_TABLE_SIZE, hw::TERN_TABLE_SIZE); }

	FakeMemory &memory_;
	unsigned levels_;
	unsigned page_shift_;
	uint64_t inner_bits_;
	Iova root_;
};

/** A buffer of @size bytes: contiguous with @levels 0, else of leaf pages with gaps between them;
 * @on_demand: which the card does not see before bring(). */
class Buffer {
public:
	Buffer(FakeMemory &memory, uint64_t size, unsigned levels = 0, unsigned page_shift = 12,
	       bool on_demand = false)
	        : memory_(&memory), page_size_(uint64_t{1} << page_shift)
	{
		if (levels == 0) {
			leaves_.push_back(memory.alloc(size));
			page_size_ = size;
			pages_.iova = leaves_[0];
			return;
		}
		tables_ = std::make_shared<PageTables>(memory, levels, page_shift, on_demand);
		for (uint64_t page = 0; page * page_size_ < size; page++) {
			memory.alloc(page_size_); /* the gap */
			leaves_.push_back(memory.alloc(page_size_, page_size_));
			if (!on_demand)
				tables_->set(page, leaves_.back());
		}
		pages_ = tables_->pages();
	}

	/* Of a buffer on demand, by number of leaf page. */

	uint64_t leaf_of(uint64_t offset) const { return offset / page_size_; }
	uint64_t leaves() const { return leaves_.size(); }
	void bring(uint64_t leaf, bool write)
	{
		tables_->set(leaf,
		             leaves_[leaf] | TERN_PAGE_PRESENT | (write ? TERN_PAGE_WRITE : 0));
	}
	/** SYNC_MR is to follow. */
	void take_away(uint64_t leaf) { tables_->set(leaf, 0); }
	/** Moves what the card does not use elsewhere; where it was is no memory any more. */
	void move(uint64_t leaf)
	{
		const Iova from = leaves_[leaf];
		const Iova to = memory_->alloc(page_size_, page_size_);
		memory_->poke(to, memory_->bytes(from, page_size_));
		memory_->release(from, page_size_);
		leaves_[leaf] = to;
	}

	const hw::tern_hw_pages &pages() const { return pages_; }
	/** Where byte @offset is. */
	Iova at(uint64_t offset) const
	{
		return leaves_[offset / page_size_] + offset % page_size_;
	}

	/* The host's own accesses at @offset. */

	void write(uint64_t offset, std::span<const std::byte> data)
	{
		while (!data.empty()) {
			const auto part = data.first(in_page(offset, data.size()));
			memory_->poke(at(offset), part);
			offset += part.size();
			data = data.subspan(part.size());
		}
	}
	std::vector<std::byte> read(uint64_t offset, size_t size) const
	{
		std::vector<std::byte> data(size);
		for (size_t done = 0; done < size;) {
			const size_t n = in_page(offset + done, size - done);
			memory_->peek(at(offset + done), std::span(data).subspan(done, n));
			done += n;
		}
		return data;
	}

private:
	/** How much of @size bytes at @offset lies in the first leaf page. */
	size_t in_page(uint64_t offset, size_t size) const
	{
		return std::min<uint64_t>(size, page_size_ - offset % page_size_);
	}

	FakeMemory *memory_;
	uint64_t page_size_;
	std::vector<Iova> leaves_;
	std::shared_ptr<PageTables> tables_;
	hw::tern_hw_pages pages_{};
};

} // namespace tern::test
