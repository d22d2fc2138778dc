// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/memory/page_list.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "qemu/rnic/all_zero.h"

namespace tern {

namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr unsigned kTableShift = 12;
constexpr unsigned kIndexBits = 9;
static_assert(hw::TERN_TABLE_SIZE == 1 << kTableShift);
static_assert(hw::TERN_TABLE_ENTRIES == 1 << kIndexBits);

constexpr bool is_aligned(Iova iova, unsigned shift)
{
	return (iova & ((uint64_t{1} << shift) - 1)) == 0;
}

/** Whether @length bytes from @begin end below 2^64. */
constexpr bool fits(uint64_t begin, uint64_t length)
{
	return length == 0 || length - 1 <= kMax - begin;
}

/** Whether @levels of tables over leaf pages of @page_shift address the byte before @end. */
constexpr bool reaches(unsigned levels, unsigned page_shift, uint64_t end)
{
	const unsigned bits = levels * kIndexBits + page_shift;
	return bits >= 64 || end <= uint64_t{1} << bits;
}

bool has_tables(const hw::tern_hw_pages &pages)
{
	return pages.levels >= 1 && pages.levels <= hw::TERN_MAX_LEVELS &&
	       pages.page_shift >= hw::TERN_MIN_PAGE_SHIFT &&
	       pages.page_shift <= hw::TERN_MAX_PAGE_SHIFT;
}

bool is_contiguous_list(const hw::tern_hw_pages &pages, uint64_t first_offset, uint64_t length)
{
	return pages.levels == 0 && pages.page_shift == 0 && first_offset == 0 &&
	       fits(pages.iova.get(), length);
}

bool is_table_list(const hw::tern_hw_pages &pages, uint64_t first_offset, uint64_t length)
{
	return has_tables(pages) && is_aligned(pages.iova.get(), kTableShift) &&
	       first_offset >> pages.page_shift == 0 && length <= kMax - first_offset &&
	       reaches(pages.levels, pages.page_shift, first_offset + length);
}

} // namespace

const std::array<hw::__le64, hw::TERN_TABLE_ENTRIES> *TableCache::get(Iova table)
{
	if (!slots_)
		slots_ = std::make_unique<std::array<Slot, kSlots>>();

	Slot &slot = (*slots_)[(table >> kTableShift) % kSlots];
	if (slot.generation != generation_ || slot.table != table) {
		slot.generation = 0;
		slot.table = table;
		if (!memory_.read(table, std::as_writable_bytes(std::span(slot.entries))))
			return nullptr;
		slot.generation = generation_;
	}
	return &slot.entries;
}

void TableCache::drop(Iova table)
{
	epoch_++;
	if (!slots_)
		return;
	Slot &slot = (*slots_)[(table >> kTableShift) % kSlots];
	if (slot.table == table)
		slot.generation = 0;
}

void TableCache::drop_all()
{
	epoch_++;
	generation_++;
}

std::optional<PageList> PageList::make(const hw::tern_hw_pages &pages, uint64_t first_offset,
                                       uint64_t length)
{
	if (!all_zero(pages.rsvd) || !(is_contiguous_list(pages, first_offset, length) ||
	                               is_table_list(pages, first_offset, length)))
		return std::nullopt;

	PageList list;
	list.iova_ = pages.iova.get();
	list.first_offset_ = first_offset;
	list.length_ = length;
	list.levels_ = pages.levels;
	list.page_shift_ = pages.page_shift;
	return list;
}

std::optional<PageList> PageList::make_region(const hw::tern_hw_pages &pages, uint64_t start,
                                              uint64_t length, bool on_demand)
{
	const uint64_t page = has_tables(pages) ? uint64_t{1} << pages.page_shift : 1;
	auto list = make(pages, start & (page - 1), length);
	if (on_demand && !pages.levels)
		return std::nullopt;
	if (list)
		list->on_demand_ = on_demand;
	return list;
}

/* Entry @index of a table. Entries of pages on demand are read from the host each time, because the
 * host changes them at any time. */
Reach PageList::entry(TableCache &cache, HostMemory &memory, Iova table, uint64_t index,
                      uint64_t &value) const
{
	if (!on_demand_) {
		const auto *entries = cache.get(table);
		if (!entries)
			return Reach::Fault;
		value = (*entries)[index].get();
		return Reach::Ok;
	}
	hw::__le64 raw;
	if (!memory.read(table + index * sizeof(raw), std::as_writable_bytes(std::span(&raw, 1))))
		return Reach::Fault;
	value = raw.get();
	return value & TERN_PAGE_PRESENT ? Reach::Ok : Reach::Absent;
}

/* Reads the entry of a leaf page. The guest wrote it: the alignment check keeps a run within its
 * page. */
Reach PageList::read_leaf(TableCache &cache, HostMemory &memory, bool write, Leaf &leaf) const
{
	const Reach reach = entry(cache, memory, leaf.table, leaf.index, leaf.iova);
	if (reach != Reach::Ok)
		return reach;
	if (on_demand_) {
		if (write && !(leaf.iova & TERN_PAGE_WRITE))
			return Reach::Absent;
		leaf.iova &= ~(TERN_PAGE_PRESENT | TERN_PAGE_WRITE);
	}
	return is_aligned(leaf.iova, page_shift_) ? Reach::Ok : Reach::Fault;
}

Reach PageList::find_leaf(TableCache &cache, HostMemory &memory, uint64_t page, bool write,
                          Leaf &leaf) const
{
	constexpr uint64_t kIndex = hw::TERN_TABLE_ENTRIES - 1;
	leaf.table = iova_;
	for (unsigned level = levels_ - 1; level > 0; level--) {
		uint64_t value;
		const Reach reach = entry(cache, memory, leaf.table,
		                          page >> level * kIndexBits & kIndex, value);
		if (reach != Reach::Ok)
			return reach;
		if (on_demand_)
			value &= ~TERN_PAGE_PRESENT;
		if (!is_aligned(value, kTableShift))
			return Reach::Fault;
		leaf.table = value;
	}
	leaf.index = page & kIndex;
	return read_leaf(cache, memory, write, leaf);
}

/* Extends @run, which ends with @leaf, by the leaf pages that follow. Stops at the end of the
 * table. */
void PageList::extend(TableCache &cache, HostMemory &memory, Leaf leaf, uint64_t wanted, bool write,
                      Run &run) const
{
	while (run.size < wanted && ++leaf.index < hw::TERN_TABLE_ENTRIES &&
	       read_leaf(cache, memory, write, leaf) == Reach::Ok && leaf.iova > run.iova &&
	       leaf.iova == run.iova + run.size)
		run.size += uint64_t{1} << page_shift_;
}

Reach PageList::look_up(TableCache &cache, HostMemory &memory, uint64_t offset, uint64_t wanted,
                        bool write, Run &run) const
{
	if (offset >= length_)
		return Reach::Fault;
	const uint64_t left = length_ - offset;
	if (levels_ == 0) {
		run = {iova_ + offset, left};
		return Reach::Ok;
	}

	const uint64_t position = first_offset_ + offset;
	const uint64_t page_size = uint64_t{1} << page_shift_;
	const uint64_t in_page = position & (page_size - 1);
	Leaf leaf;
	const Reach reach = find_leaf(cache, memory, position >> page_shift_, write, leaf);
	if (reach != Reach::Ok)
		return reach;
	run = {leaf.iova + in_page, page_size - in_page};
	extend(cache, memory, leaf, std::min(wanted, left), write, run);
	run.size = std::min(run.size, left);
	if (!on_demand_)
		latest_ = {offset, run, cache.epoch()};
	return Reach::Ok;
}

std::optional<PageList::Run> PageList::at(TableCache &cache, HostMemory &memory,
                                          uint64_t offset) const
{
	Run run;
	if (find(cache, memory, offset, 1, true, run) != Reach::Ok)
		return std::nullopt;
	return run;
}

void PageList::forget(TableCache &cache) const
{
	if (levels_ == 1)
		cache.drop(iova_);
	else if (levels_ > 1)
		cache.drop_all();
}

template <typename Byte>
Reach PageList::copy(TableCache &cache, HostMemory &memory, uint64_t offset, std::span<Byte> data,
                     uint64_t &done) const
{
	constexpr bool kWrite = std::is_const_v<Byte>;
	for (done = 0; done < data.size();) {
		Run run;
		const Reach reach =
		        find(cache, memory, offset + done, data.size() - done, kWrite, run);
		if (reach != Reach::Ok)
			return reach;
		const auto part =
		        data.subspan(done, std::min<uint64_t>(run.size, data.size() - done));
		bool ok;
		if constexpr (kWrite)
			ok = memory.write(run.iova, part);
		else
			ok = memory.read(run.iova, part);
		if (!ok)
			return Reach::Fault;
		done += part.size();
	}
	return Reach::Ok;
}

template Reach PageList::copy(TableCache &, HostMemory &, uint64_t, std::span<std::byte>,
                              uint64_t &) const;
template Reach PageList::copy(TableCache &, HostMemory &, uint64_t, std::span<const std::byte>,
                              uint64_t &) const;

bool PageList::read(TableCache &cache, HostMemory &memory, uint64_t offset,
                    std::span<std::byte> data) const
{
	uint64_t done;
	return copy(cache, memory, offset, data, done) == Reach::Ok;
}

bool PageList::write(TableCache &cache, HostMemory &memory, uint64_t offset,
                     std::span<const std::byte> data) const
{
	uint64_t done;
	return copy(cache, memory, offset, data, done) == Reach::Ok;
}

} // namespace tern
