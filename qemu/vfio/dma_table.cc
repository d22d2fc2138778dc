// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/dma_table.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <linux/vfio.h>
#include <utility>

namespace tern::vfio {

static uint64_t end_of(const DmaTable::Range &range)
{
	return range.iova + range.size;
}

DmaTable::DmaTable(size_t readers) : list_(new List)
{
	for (size_t i = 0; i < readers; i++)
		readers_.emplace_back(*this);
}

DmaTable::~DmaTable()
{
	delete list_.load();
}

void DmaTable::publish(std::unique_ptr<const List> list)
{
	const std::unique_ptr<const List> old(list_.exchange(list.release()));
	for (const Reader &reader : readers_) {
		while (reader.used_.load() == old.get()) {
			const timespec moment{.tv_sec = 0, .tv_nsec = 20'000};
			nanosleep(&moment, nullptr);
		}
	}
}

/* The memory is to be a memfd that cannot shrink: an access beyond its end would kill the process.
 */
int DmaTable::map_memory(const DmaMap &what, const Fd &fd, Range &range)
{
	if (what.size > UINT64_MAX - what.offset)
		return EINVAL;
	auto memory = std::make_shared<shm::Mapping>();
	const auto error = memory->map(fd, what.size,
	                               range.writable ? shm::Mapping::Access::ReadWrite
	                                              : shm::Mapping::Access::Read,
	                               what.offset);
	if (!error.empty()) {
		if (!std::exchange(told_, true))
			std::fprintf(stderr,
			             "tern-card: guest memory: %s; what works is "
			             "memory-backend-memfd with share=on,seal=on\n",
			             error.c_str());
		return EPERM;
	}
	range.at = memory->bytes().data();
	range.memory = std::move(memory);
	return 0;
}

int DmaTable::map(const DmaMap &what, const Fd &fd)
{
	constexpr uint32_t kFlags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
	if (!what.size || (what.address | what.size | what.offset) % kPageSize ||
	    what.size > UINT64_MAX - what.address || what.flags & ~kFlags || !what.flags)
		return EINVAL;
	const List &now = *list_.load();
	const auto next = std::ranges::lower_bound(now, what.address, {}, &Range::iova);
	if ((next != now.end() && next->iova - what.address < what.size) ||
	    (next != now.begin() && what.address - (next - 1)->iova < (next - 1)->size))
		return EEXIST;
	if (now.size() == kMaxRanges)
		return ENOSPC;
	Range range{.iova = what.address,
	            .size = what.size,
	            .readable = (what.flags & VFIO_DMA_MAP_FLAG_READ) != 0,
	            .writable = (what.flags & VFIO_DMA_MAP_FLAG_WRITE) != 0,
	            .at = nullptr,
	            .memory = nullptr};
	if (const int error = fd ? map_memory(what, fd, range) : 0)
		return error;
	auto list = std::make_unique<List>(now);
	list->insert(list->begin() + (next - now.begin()), std::move(range));
	publish(std::move(list));
	return 0;
}

int DmaTable::unmap(uint64_t iova, uint64_t size)
{
	if (!size || size > UINT64_MAX - iova)
		return EINVAL;
	const uint64_t end = iova + size;
	const List &now = *list_.load();
	const auto first = std::ranges::upper_bound(now, iova, {}, end_of);
	const auto last = std::ranges::lower_bound(now, end, {}, &Range::iova);
	if (first == last)
		return ENOENT;
	if (first->iova < iova || end_of(*(last - 1)) > end)
		return EINVAL;
	auto list = std::make_unique<List>(now.begin(), first);
	list->insert(list->end(), last, now.end());
	publish(std::move(list));
	return 0;
}

void DmaTable::unmap_all()
{
	told_ = false;
	publish(std::make_unique<List>());
}

/** Uses the list of this moment until its end, unless the reader holds one anyway. */
class DmaTable::Reader::Access {
public:
	explicit Access(Reader &reader) : reader_(reader), own_(!reader.held_)
	{
		if (own_)
			reader_.hold();
	}
	~Access()
	{
		if (own_)
			reader_.release();
	}

	/** The memory at @iova, and at most @size bytes of it; empty if there is none that may be
	 * accessed so. */
	std::span<std::byte> find(uint64_t iova, size_t size, bool write) const
	{
		if (!reader_.table_.bus_master_.load(std::memory_order_relaxed))
			return {};
		const List &list = *reader_.used_.load(std::memory_order_relaxed);
		auto range = std::ranges::upper_bound(list, iova, {}, &Range::iova);
		if (range == list.begin())
			return {};
		--range;
		const uint64_t offset = iova - range->iova;
		if (offset >= range->size || !range->at ||
		    !(write ? range->writable : range->readable))
			return {};
		return {range->at + offset, std::min<uint64_t>(size, range->size - offset)};
	}

private:
	Reader &reader_;
	const bool own_;
};

/* Either publish() sees which list is used here, or this thread sees the new one. */
void DmaTable::Reader::hold()
{
	const List *list;
	do {
		list = table_.list_.load();
		used_.store(list);
	} while (list != table_.list_.load());
	held_ = true;
}

void DmaTable::Reader::release()
{
	held_ = false;
	used_.store(nullptr, std::memory_order_release);
}

bool DmaTable::Reader::read(uint64_t from, std::span<std::byte> to)
{
	const Access access(*this);
	while (!to.empty()) {
		const auto ram = access.find(from, to.size(), false);
		if (ram.empty())
			return false;
		std::memcpy(to.data(), ram.data(), ram.size());
		from += ram.size();
		to = to.subspan(ram.size());
	}
	return true;
}

bool DmaTable::Reader::write(uint64_t to, std::span<const std::byte> from)
{
	const Access access(*this);
	while (!from.empty()) {
		const auto ram = access.find(to, from.size(), true);
		if (ram.empty())
			return false;
		std::memcpy(ram.data(), from.data(), ram.size());
		to += ram.size();
		from = from.subspan(ram.size());
	}
	return true;
}

bool DmaTable::Reader::store64(uint64_t to, uint64_t value)
{
	const Access access(*this);
	const auto ram = access.find(to, sizeof(value), true);
	if (to % sizeof(value) || ram.size() != sizeof(value))
		return false;
	std::atomic_ref(*reinterpret_cast<uint64_t *>(ram.data()))
	        .store(value, std::memory_order_release);
	return true;
}

bool DmaTable::Reader::load32(uint64_t from, uint32_t &value)
{
	const Access access(*this);
	const auto ram = access.find(from, sizeof(value), false);
	if (from % sizeof(value) || ram.size() != sizeof(value))
		return false;
	value = std::atomic_ref(*reinterpret_cast<uint32_t *>(ram.data()))
	                .load(std::memory_order_acquire);
	return true;
}

} // namespace tern::vfio
