// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/memory/page_list.h"

#include <algorithm>
#include <limits>

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

/** Whether @length bytes from @begin on stay below 2^64. */
constexpr bool fits(uint64_t begin, uint64_t length)
{
	return length == 0 || length - 1 <= kMax - begin;
}

/** Whether @levels of tables over leaf pages of @page_shift reach the byte before @end. */
constexpr bool reaches(unsigned levels, unsigned page_shift, uint64_t end)
{
	const unsigned bits = levels * kIndexBits + page_shift;
	return bits >= 64 || end <= uint64_t{1} << bits;
}

bool is_zero(std::span<const uint8_t> bytes)
{
	return std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == 0; });
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
	if (!slot.valid || slot.table != table) {
		slot.table = table;
		slot.valid = memory_.read(table, std::as_writable_bytes(std::span(slot.entries)));
	}
	return slot.valid ? &slot.entries : nullptr;
}

void TableCache::drop(Iova table)
{
	if (!slots_)
		return;
	Slot &slot = (*slots_)[(table >> kTableShift) % kSlots];
	if (slot.table == table)
		slot.valid = false;
}

void TableCache::drop_all()
{
	if (!slots_)
		return;
	for (Slot &slot : *slots_)
		slot.valid = false;
}

std::optional<PageList> PageList::make(const hw::tern_hw_pages &pages, uint64_t first_offset,
                                       uint64_t length)
{
	if (!is_zero(pages.rsvd) || !(is_contiguous_list(pages, first_offset, length) ||
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
                                              uint64_t length)
{
	const uint64_t page = has_tables(pages) ? uint64_t{1} << pages.page_shift : 1;
	return make(pages, start & (page - 1), length);
}

/* Where leaf page @page is. A table entry is the guest's: its alignment is what keeps a run in its
 * page. */
std::optional<Iova> PageList::leaf(TableCache &cache, uint64_t page) const
{
	Iova iova = iova_;
	for (unsigned level = levels_; level-- > 0;) {
		const auto *table = cache.get(iova);
		if (!table)
			return std::nullopt;
		iova = (*table)[page >> level * kIndexBits & (hw::TERN_TABLE_ENTRIES - 1)].get();
		if (!is_aligned(iova, level ? kTableShift : page_shift_))
			return std::nullopt;
	}
	return iova;
}

std::optional<PageList::Run> PageList::at(TableCache &cache, HostMemory &, uint64_t offset) const
{
	if (offset >= length_)
		return std::nullopt;
	const uint64_t left = length_ - offset;
	if (levels_ == 0)
		return Run{iova_ + offset, left};

	const uint64_t position = first_offset_ + offset;
	const uint64_t page_size = uint64_t{1} << page_shift_;
	const uint64_t in_page = position & (page_size - 1);
	const auto iova = leaf(cache, position >> page_shift_);
	if (!iova)
		return std::nullopt;
	return Run{*iova + in_page, std::min(left, page_size - in_page)};
}

void PageList::forget(TableCache &cache) const
{
	if (levels_ == 1)
		cache.drop(iova_);
	else if (levels_ > 1)
		cache.drop_all();
}

bool PageList::read(TableCache &cache, HostMemory &memory, uint64_t offset,
                    std::span<std::byte> data) const
{
	while (!data.empty()) {
		const auto run = at(cache, memory, offset);
		if (!run)
			return false;
		const auto part = data.first(std::min<uint64_t>(run->size, data.size()));
		if (!memory.read(run->iova, part))
			return false;
		data = data.subspan(part.size());
		offset += part.size();
	}
	return true;
}

bool PageList::write(TableCache &cache, HostMemory &memory, uint64_t offset,
                     std::span<const std::byte> data) const
{
	while (!data.empty()) {
		const auto run = at(cache, memory, offset);
		if (!run)
			return false;
		const auto part = data.first(std::min<uint64_t>(run->size, data.size()));
		if (!memory.write(run->iova, part))
			return false;
		data = data.subspan(part.size());
		offset += part.size();
	}
	return true;
}

} // namespace tern
