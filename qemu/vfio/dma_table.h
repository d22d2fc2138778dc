/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "qemu/shm/segment.h"
#include "qemu/vfio/protocol.h"

namespace tern::vfio {

/**
 * The guest's memory as the client has mapped it: ranges of IOVAs and the descriptors that back
 * them. One thread changes the table; each engine's thread reads it through a Reader.
 *
 * A change publishes a new list of ranges. The thread that replaces a list waits until no reader
 * uses the old one, and then unmaps the memory. A reader that begins after the change finds the
 * new list, so a reader delays a change by at most one of its rounds.
 */
class DmaTable {
public:
	struct Range {
		uint64_t iova;
		uint64_t size;
		bool readable;
		bool writable;
		/* null without a descriptor: such memory cannot be accessed */
		std::byte *at;
		std::shared_ptr<shm::Mapping> memory;
	};
	using List = std::vector<Range>; /* by iova */

	/** @readers: their number. */
	explicit DmaTable(size_t readers);
	~DmaTable();
	DmaTable(const DmaTable &) = delete;
	DmaTable &operator=(const DmaTable &) = delete;

	/** Returns 0 or an errno. @fd may be none. */
	int map(const DmaMap &what, const Fd &fd);
	/** Unmaps all ranges inside the @size bytes at @iova. Returns 0, ENOENT if there is no such
	 * range, or EINVAL if a range is only partly inside. */
	int unmap(uint64_t iova, uint64_t size);
	void unmap_all();
	/** Without it, accesses fail. An access that has begun may still finish. */
	void set_bus_master(bool on) { bus_master_.store(on, std::memory_order_relaxed); }

	/** An engine's view; used by its thread. */
	class Reader {
	public:
		explicit Reader(const DmaTable &table) : table_(table) {}

		/** Brackets a series of accesses, to make each cheaper. */
		void hold();
		void release();

		bool read(uint64_t from, std::span<std::byte> to);
		bool write(uint64_t to, std::span<const std::byte> from);
		/** One store, ordered after all earlier writes; @to is 8-byte aligned. */
		bool store64(uint64_t to, uint64_t value);
		/** One load, ordered before all later reads; @from is 4-byte aligned. */
		bool load32(uint64_t from, uint32_t &value);

	private:
		friend class DmaTable;
		class Access;

		const DmaTable &table_;
		std::atomic<const List *> used_{nullptr};
		bool held_ = false;
	};

	Reader &reader(size_t number) { return readers_[number]; }

private:
	int map_memory(const DmaMap &what, const Fd &fd, Range &range);
	void publish(std::unique_ptr<const List> list);

	std::deque<Reader> readers_;
	std::atomic<const List *> list_;
	std::atomic<bool> bus_master_{false};
	bool told_ = false; /* why memory of this client was refused */
};

} // namespace tern::vfio
