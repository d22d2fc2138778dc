// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/memory/region.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

namespace tern {

namespace {

/** Whether [@addr, @addr + @length) lies in @region. Computed without sums that could wrap. */
bool contains(const Region &region, uint64_t addr, uint64_t length)
{
	return addr >= region.start && addr - region.start <= region.length &&
	       length <= region.length - (addr - region.start);
}

/** The location of bytes of a region or window. */
struct Place {
	const Region &holder; /* the region with the pages */
	uint64_t offset;
};

Place place_of(const Region &region, uint64_t addr)
{
	const uint64_t offset = addr - region.start;
	if (region.parent)
		return {*region.parent, region.parent_offset + offset};
	return {region, offset};
}

/** Walks a list of SGEs from a byte offset on. */
class Pieces {
public:
	Pieces(std::span<const Sge> sges, uint64_t offset) : sges_(sges), offset_(offset) {}

	/** Advances to the SGE with the next byte; null at the end of the list. */
	const Sge *current()
	{
		while (!sges_.empty() && offset_ >= sges_.front().length) {
			offset_ -= sges_.front().length;
			sges_ = sges_.subspan(1);
		}
		return sges_.empty() ? nullptr : &sges_.front();
	}
	/** Offset of the next byte in the current SGE. */
	uint64_t offset() const { return offset_; }
	void advance(uint64_t n) { offset_ += n; }

private:
	std::span<const Sge> sges_;
	uint64_t offset_;
};

} // namespace

Memory::Memory(HostMemory &host, uint32_t max_regions, std::span<std::byte> device, uint32_t base)
        : host_(host), device_(device), tables_(host), regions_(max_regions, base)
{
}

std::optional<uint32_t> Memory::create(Region &&region, uint32_t owner)
{
	const uint8_t variant = region.variant;
	const auto index = regions_.insert(std::make_unique<Region>(std::move(region)), owner);
	if (!index)
		return std::nullopt;
	regions_.find(*index)->index = *index;
	return *index << kKeyIndexShift | variant;
}

const Region *Memory::find(uint32_t key) const
{
	const Region *region = at_index(key);
	return region && region->variant == (key & kKeyVariantMask) ? region : nullptr;
}

void Memory::replace(uint32_t key, const Region &region)
{
	Region &old = *at_index(key);
	old.pages.forget(tables_);
	old = region;
}

uint32_t Memory::pdn_of(uint32_t key) const
{
	const Region *region = at_index(key);
	return region ? region->pdn : 0;
}

Memory::Destroyed Memory::destroy_region(uint32_t key)
{
	const Region *region = at_index(key);
	if (!region || region->is_window() ||
	    (region->kind == Region::Kind::Registered && region != find(key)))
		return Destroyed::Missing;
	if (region->windows)
		return Destroyed::Busy;
	region->pages.forget(tables_);
	regions_.remove(key >> kKeyIndexShift);
	return Destroyed::Done;
}

std::optional<const Region *> Memory::authorize(const Sge &sge, Domain domain, bool write) const
{
	if (sge.lkey == TERN_LKEY_LOCAL_DMA) {
		const uint64_t room = std::numeric_limits<uint64_t>::max() - sge.addr;
		if (!domain.kernel || (sge.length && sge.length - 1 > room))
			return std::nullopt;
		return nullptr;
	}

	const Region *region = find(sge.lkey);
	if (!region)
		return sge.lkey == TERN_LKEY_NULL ? std::optional(&kNullRegion) : std::nullopt;
	if (region->is_window() || !region->valid || region->pdn != domain.pdn ||
	    !contains(*region, sge.addr, sge.length) ||
	    (write && !(region->access & TERN_ACCESS_LOCAL_WRITE)))
		return std::nullopt;
	return region;
}

Access Memory::check_local(std::span<const Sge> sges, Domain domain, bool write) const
{
	for (const Sge &sge : sges)
		if (sge.length && !authorize(sge, domain, write))
			return Access::Denied;
	return Access::Ok;
}

/* @offset: of the first absent byte. */
void Memory::note_fault(const Region &region, uint64_t offset, uint64_t length, bool write)
{
	const uint64_t most = std::min(region.length - offset, kMaxPageFault);
	fault_ = {.addr = region.start + offset,
	          .length = static_cast<uint32_t>(std::min(length, most)),
	          .key = region.key(),
	          .write = write};
}

/* A const Byte is copied to host memory, another from it. */
template <typename Byte>
Access Memory::copy(const Region *region, uint64_t addr, std::span<Byte> data, uint64_t ahead)
{
	constexpr bool kWrite = std::is_const_v<Byte>;
	if (!region) {
		bool ok;
		if constexpr (kWrite)
			ok = host_.write(addr, data);
		else
			ok = host_.read(addr, data);
		return ok ? Access::Ok : Access::Fault;
	}
	if (region == &kNullRegion) {
		if constexpr (!kWrite)
			std::ranges::fill(data, std::byte{0});
		return Access::Ok;
	}
	const auto [holder, offset] = place_of(*region, addr);
	uint64_t done;
	switch (holder.pages.copy(tables_, memory_of(holder), offset, data, done)) {
	case Reach::Ok:
		return Access::Ok;
	case Reach::Absent:
		note_fault(holder, offset + done, data.size() - done + ahead, kWrite);
		return Access::NeedPages;
	default:
		return Access::Fault;
	}
}

template <typename Byte>
Access Memory::transfer(std::span<const Sge> sges, Domain domain, uint64_t offset,
                        std::span<Byte> data)
{
	for (Pieces pieces(sges, offset); !data.empty();) {
		const Sge *sge = pieces.current();
		if (!sge)
			return Access::Denied;
		const uint64_t left = sge->length - pieces.offset();
		const auto part = data.first(std::min<uint64_t>(left, data.size()));
		/* What is used of it: a receive buffer may end past its region. */
		const Sge used = {.addr = sge->addr + pieces.offset(),
		                  .length = static_cast<uint32_t>(part.size()),
		                  .lkey = sge->lkey};
		const auto region = authorize(used, domain, std::is_const_v<Byte>);
		if (!region)
			return Access::Denied;

		const Access access = copy(*region, used.addr, part, left - part.size());
		if (access != Access::Ok)
			return access;
		pieces.advance(part.size());
		data = data.subspan(part.size());
	}
	return Access::Ok;
}

Access Memory::gather(std::span<const Sge> sges, Domain domain, uint64_t offset,
                      std::span<std::byte> to)
{
	return transfer(sges, domain, offset, to);
}

Access Memory::scatter(std::span<const Sge> sges, Domain domain, uint64_t offset,
                       const Payload &from)
{
	for (size_t i = 0; i < from.pieces(); i++) {
		const Access access = transfer(sges, domain, offset, from.piece(i));
		if (access != Access::Ok)
			return access;
		offset += from.piece(i).size();
	}
	return Access::Ok;
}

bool Memory::locate(const Region *region, uint64_t addr, size_t size, HostRanges &ranges)
{
	if (!region)
		return ranges.add(addr, static_cast<uint32_t>(size));
	const auto [holder, offset] = place_of(*region, addr);
	if (region == &kNullRegion || holder.device)
		return false;
	ranges.keys.add(holder.key());
	if (&holder != region)
		ranges.keys.add(region->key());
	for (size_t done = 0; done < size;) {
		PageList::Run run;
		if (holder.pages.find(tables_, host_, offset + done, size - done, false, run) !=
		    Reach::Ok)
			return false;
		const size_t part = std::min<uint64_t>(run.size, size - done);
		if (!ranges.add(run.iova, static_cast<uint32_t>(part)))
			return false;
		done += part;
	}
	return true;
}

bool Memory::locate(std::span<const Sge> sges, Domain domain, uint64_t offset, size_t size,
                    HostRanges &ranges)
{
	for (Pieces pieces(sges, offset); size;) {
		const Sge *sge = pieces.current();
		const auto region = sge ? authorize(*sge, domain, false) : std::nullopt;
		if (!region)
			return false;
		const size_t part = std::min<uint64_t>(sge->length - pieces.offset(), size);
		if (!locate(*region, sge->addr + pieces.offset(), part, ranges))
			return false;
		pieces.advance(part);
		size -= part;
	}
	return true;
}

const Region *Memory::authorize_remote(uint32_t rkey, uint64_t va, uint64_t length, Target target,
                                       uint8_t rights) const
{
	const Region *region = find(rkey);
	return region && region->valid && region->pdn == target.pdn &&
	                       (region->kind != Region::Kind::Window2 ||
	                        region->qpn == target.qpn) &&
	                       (region->access & rights) == rights && contains(*region, va, length)
	               ? region
	               : nullptr;
}

Access Memory::check_remote(uint32_t rkey, uint64_t va, uint64_t length, Target target,
                            uint8_t rights) const
{
	return length == 0 || authorize_remote(rkey, va, length, target, rights) ? Access::Ok
	                                                                         : Access::Denied;
}

Access Memory::check_flush(uint32_t rkey, uint64_t va, uint64_t length, bool whole,
                           Target target) const
{
	const Region *region = find(rkey);
	if (region && whole) {
		va = region->start;
		length = region->length;
	}
	return authorize_remote(rkey, va, length, target, TERN_ACCESS_FLUSH_GLOBAL)
	               ? Access::Ok
	               : Access::Denied;
}

Access Memory::read_remote(uint32_t rkey, uint64_t va, Target target, std::span<std::byte> to,
                           uint64_t ahead)
{
	if (to.empty())
		return Access::Ok;
	const Region *region =
	        authorize_remote(rkey, va, to.size(), target, TERN_ACCESS_REMOTE_READ);
	if (!region)
		return Access::Denied;
	return copy(region, va, to, ahead);
}

bool Memory::locate_remote(uint32_t rkey, uint64_t va, Target target, size_t size,
                           HostRanges &ranges)
{
	const Region *region = authorize_remote(rkey, va, size, target, TERN_ACCESS_REMOTE_READ);
	return region && locate(region, va, size, ranges);
}

Access Memory::write_remote(uint32_t rkey, uint64_t va, Target target, const Payload &from,
                            uint64_t ahead)
{
	if (from.empty())
		return Access::Ok;
	const Region *region =
	        authorize_remote(rkey, va, from.size(), target, TERN_ACCESS_REMOTE_WRITE);
	if (!region)
		return Access::Denied;
	for (size_t i = 0, done = 0; i < from.pieces(); i++) {
		const auto &piece = from.piece(i);
		done += piece.size();
		const Access access =
		        copy(region, va + done - piece.size(), piece, ahead + from.size() - done);
		if (access != Access::Ok)
			return access;
	}
	return Access::Ok;
}

/* An aligned va gives an aligned IOVA, except in contiguous or zero-based regions with a misaligned
 * start. */
Access Memory::load_atomic(uint32_t rkey, uint64_t va, Target target, uint8_t right, Word &word,
                           uint64_t &original)
{
	const Region *region = authorize_remote(rkey, va, kAtomicSize, target, right);
	if (!region)
		return Access::Denied;
	const auto [holder, offset] = place_of(*region, va);
	HostMemory &memory = memory_of(holder);
	PageList::Run run;
	const Reach reach = holder.pages.find(tables_, memory, offset, kAtomicSize, true, run);
	if (reach == Reach::Absent) {
		note_fault(holder, offset, kAtomicSize, true);
		return Access::NeedPages;
	}
	if (reach != Reach::Ok || run.size < kAtomicSize || run.iova % kAtomicSize)
		return Access::Fault;

	std::array<Le<uint64_t>, 1> value;
	if (!memory.read(run.iova, std::as_writable_bytes(std::span(value))))
		return Access::Fault;
	word = {&memory, run.iova};
	original = value[0].get();
	return Access::Ok;
}

} // namespace tern
