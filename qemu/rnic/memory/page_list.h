/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "qemu/rnic/ports.h"
#include "tern/tern_hw.h"

namespace tern {

/**
 * Tables of page lists, of any level, that were read lately, direct-mapped by the table's IOVA, so
 * that a transfer does not walk host memory for each page. The memory is bounded whatever the guest
 * registers. An entry is dropped when an object whose list holds it goes (drop_all).
 */
class TableCache {
public:
	explicit TableCache(HostMemory &memory) : memory_(memory) {}

	/** The 512 entries of the table at @table, or null when it cannot be read; valid until the
	 * next call. */
	const std::array<hw::__le64, hw::TERN_TABLE_ENTRIES> *get(Iova table);
	/** Forgets the table at @table: it may change. */
	void drop(Iova table);
	/** Forgets all: some object ended, its tables may now be anything. */
	void drop_all();
	/** Changes with each drop: what came from a table before is not to be relied on. */
	uint32_t epoch() const { return epoch_; }

private:
	static constexpr unsigned kSlots = 256;
	struct Slot {
		bool valid = false;
		Iova table = 0;
		std::array<hw::__le64, hw::TERN_TABLE_ENTRIES> entries;
	};

	HostMemory &memory_;
	std::unique_ptr<std::array<Slot, kSlots>> slots_;
	uint32_t epoch_ = 0;
};

/** What became of a look for pages. */
enum class Reach : uint8_t {
	Ok,
	Absent, /* on demand: not there yet, or not to be written */
	Fault,  /* a table or a page is not reachable, or an entry misaligned */
};

/** Where a buffer is in host memory (struct tern_hw_pages), checked. */
class PageList {
public:
	PageList() = default;

	/**
	 * Checks the shape (levels, page size, alignment, reserved bytes) for a buffer of @length
	 * bytes that begins @first_offset bytes into leaf page 0, and that the levels can address
	 * so much. Tables are not read yet. Nothing when it is not valid.
	 */
	static std::optional<PageList> make(const hw::tern_hw_pages &pages, uint64_t first_offset,
	                                    uint64_t length);
	/** As make(), for a memory region: it begins at @start modulo the leaf page size in leaf
	 * page 0. @on_demand: entries may be absent, and change at any time. */
	static std::optional<PageList> make_region(const hw::tern_hw_pages &pages, uint64_t start,
	                                           uint64_t length, bool on_demand = false);
	bool on_demand() const { return on_demand_; }

	/** A contiguous run. */
	struct Run {
		Iova iova;
		uint64_t size; /* bytes until the end of a leaf page, or of the buffer */
	};
	/** The run at byte @offset of the buffer; nothing when a table cannot be read or an entry
	 * is misaligned. */
	std::optional<Run> at(TableCache &cache, HostMemory &memory, uint64_t offset) const;
	/** As at(), of any list; of the @wanted bytes the run has as many as lie together. @write:
	 * they will be written. */
	Reach find(TableCache &cache, HostMemory &memory, uint64_t offset, uint64_t wanted,
	           bool write, Run &run) const
	{
		const uint64_t into = offset - latest_.offset;
		if (into >= latest_.run.size || latest_.epoch != cache.epoch())
			return look_up(cache, memory, offset, wanted, write, run);
		run = {latest_.run.iova + into, latest_.run.size - into};
		return Reach::Ok;
	}

	/** Makes @cache forget the tables of this list. */
	void forget(TableCache &cache) const;

	/** Copies between the buffer at @offset and @data; false when a part is not reachable. The
	 * caller has checked the bounds. */
	bool read(TableCache &cache, HostMemory &memory, uint64_t offset,
	          std::span<std::byte> data) const;
	bool write(TableCache &cache, HostMemory &memory, uint64_t offset,
	           std::span<const std::byte> data) const;
	/** As read() or, of a const Byte, write(); @done bytes were copied in any case. */
	template <typename Byte>
	Reach copy(TableCache &cache, HostMemory &memory, uint64_t offset, std::span<Byte> data,
	           uint64_t &done) const;

private:
	/* A leaf page, and where that was found. */
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

	/* What was found last: rings and messages go on where they were. Nothing of pages on
	 * demand, which come and go. */
	struct Latest {
		uint64_t offset = 0;
		Run run{};
		uint32_t epoch = 0;
	};
	mutable Latest latest_;
};

} // namespace tern
