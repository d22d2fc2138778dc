/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "qemu/rnic/environment.h"
#include "tern/tern_hw.h"

namespace tern {

/**
 * A cache of page-list tables of any level, direct-mapped by the table's IOVA, so that a transfer
 * does not read tables from host memory for each page. Its size does not depend on what the guest
 * registers. Entries are dropped when an object whose page list they belong to is destroyed
 * (PageList::forget()).
 */
class TableCache {
public:
	explicit TableCache(HostMemory &memory) : memory_(memory) {}

	/** The 512 entries of the table at @table, or null if it cannot be read; valid until the
	 * next call. */
	const std::array<hw::__le64, hw::TERN_TABLE_ENTRIES> *get(Iova table);
	/** Drops the table at @table, because it may change. */
	void drop(Iova table);
	/** Drops all tables. */
	void drop_all();
	/** Changes with each drop: results derived from tables before are invalid. */
	uint32_t epoch() const { return epoch_; }

private:
	static constexpr unsigned kSlots = 256;
	struct Slot {
		uint64_t generation = 0; /* valid if it is that of the cache */
		Iova table = 0;
		std::array<hw::__le64, hw::TERN_TABLE_ENTRIES> entries;
	};

	HostMemory &memory_;
	std::unique_ptr<std::array<Slot, kSlots>> slots_;
	uint32_t epoch_ = 0;
	uint64_t generation_ = 1;
};

/** The result of a page lookup. */
enum class Reach : uint8_t {
	Ok,
	Absent, /* on demand: not present, or not writable */
	Fault,  /* a table or page is not accessible, or an entry is misaligned */
};

/** The location of a buffer in host memory (struct tern_hw_pages), validated. */
class PageList {
public:
	PageList() = default;

	/**
	 * Validates levels, page size, alignment and reserved bytes for a buffer of @length bytes
	 * that begins @first_offset bytes into leaf page 0, and that the levels can address that
	 * much. Reads no tables. None if invalid.
	 */
	static std::optional<PageList> make(const hw::tern_hw_pages &pages, uint64_t first_offset,
	                                    uint64_t length);
	/** As make(), for a memory region, which begins at @start modulo the leaf page size in leaf
	 * page 0. @on_demand: entries may be absent, and may change at any time. */
	static std::optional<PageList> make_region(const hw::tern_hw_pages &pages, uint64_t start,
	                                           uint64_t length, bool on_demand = false);
	bool on_demand() const { return on_demand_; }

	/** A contiguous range. */
	struct Run {
		Iova iova;
		uint64_t size; /* bytes to the end of a leaf page, or of the buffer */
	};
	/** The run at byte @offset of the buffer. None if @offset is not in the buffer, a table
	 * cannot be read or an entry is misaligned. For lists that are not on demand. */
	std::optional<Run> at(TableCache &cache, HostMemory &memory, uint64_t offset) const;
	/** As at(), also for lists on demand. The run extends over contiguous leaf pages to cover
	 * up to @wanted bytes, but not beyond a table or the cached run. @write: the bytes will be
	 * written. */
	Reach find(TableCache &cache, HostMemory &memory, uint64_t offset, uint64_t wanted,
	           bool write, Run &run) const
	{
		const uint64_t into = offset - latest_.offset;
		if (into >= latest_.run.size || latest_.epoch != cache.epoch())
			return look_up(cache, memory, offset, wanted, write, run);
		run = {latest_.run.iova + into, latest_.run.size - into};
		return Reach::Ok;
	}

	/** Drops the tables of this list from @cache: the host may reuse them now. */
	void forget(TableCache &cache) const;

	/** Copies between the buffer at @offset and @data; false if a part is not accessible. The
	 * caller has checked the bounds. */
	bool read(TableCache &cache, HostMemory &memory, uint64_t offset,
	          std::span<std::byte> data) const;
	bool write(TableCache &cache, HostMemory &memory, uint64_t offset,
	           std::span<const std::byte> data) const;
	/** As read() or, for a const Byte, write(); sets @done to the bytes copied, also on
	 * failure. */
	template <typename Byte>
	Reach copy(TableCache &cache, HostMemory &memory, uint64_t offset, std::span<Byte> data,
	           uint64_t &done) const;

private:
	/* A leaf page and its entry. */
	struct Leaf {
		Iova table;
		uint64_t index;
		Iova iova;
	};

	Reach look_up(TableCache &cache, HostMemory &memory, uint64_t offset, uint64_t wanted,
	              bool write, Run &run) const;
	void extend(TableCache &cache, HostMemory &memory, Leaf leaf, uint64_t wanted, bool write,
	            Run &run) const;
	Reach find_leaf(TableCache &cache, HostMemory &memory, uint64_t page, bool write,
	                Leaf &leaf) const;
	Reach read_leaf(TableCache &cache, HostMemory &memory, bool write, Leaf &leaf) const;
	Reach entry(TableCache &cache, HostMemory &memory, Iova table, uint64_t index,
	            uint64_t &value) const;

	Iova iova_ = 0;
	uint64_t first_offset_ = 0;
	uint64_t length_ = 0;
	uint8_t levels_ = 0;
	uint8_t page_shift_ = 0;
	bool on_demand_ = false;

	/* The last run found, because rings and messages continue where they were. Not used for
	 * pages on demand, which may change. */
	struct Latest {
		uint64_t offset = 0;
		Run run{};
		uint32_t epoch = 0;
	};
	mutable Latest latest_;
};

} // namespace tern
