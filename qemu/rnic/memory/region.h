/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "qemu/rnic/environment.h"
#include "qemu/rnic/formats/payload.h"
#include "qemu/rnic/memory/device_memory.h"
#include "qemu/rnic/memory/host_ranges.h"
#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/object_table.h"
#include "tern/tern_hw.h"

namespace tern {

/**
 * The object a key names: a memory region, which is [start, start + length) of a protection domain
 * with rights; or a memory window, which gives peers access to a part of a region. Kept small,
 * because with many in use each access costs cache misses.
 */
struct alignas(64) Region {
	enum class Kind : uint8_t {
		Registered,
		Fast,    /* registered and invalidated by work requests */
		Window1, /* owned by a protection domain */
		Window2, /* owned by the QP that bound it: type 2B */
	};

	uint64_t start = 0;
	uint64_t length = 0;
	uint32_t pdn = 0;
	uint8_t access = 0; /* TERN_ACCESS_* */
	uint8_t variant = 0;
	Kind kind = Kind::Registered;
	bool device = false; /* in the card's own memory; IOVAs are offsets */
	PageList pages{};
	uint32_t index = 0; /* bits 31:8 of the key */

	/* Regions only. */
	uint32_t windows = 0; /* windows bound to it */
	/* Bound windows only. */
	Region *parent = nullptr;
	uint64_t parent_offset = 0; /* of the window's start */
	/* Window2: the QP, and its other bound windows, by index; 0: none. */
	uint32_t qpn = 0;
	uint32_t next_window = 0;
	uint32_t previous_window = 0;

	bool valid = true; /* false: Fast is not registered, a window is not bound */

	bool is_window() const { return kind == Kind::Window1 || kind == Kind::Window2; }
	uint32_t key() const;
};

static_assert(sizeof(Region) == 128);

/** BIND_MW: the segment of tern_hw.h in host order. */
struct BindRequest {
	uint64_t addr = 0;
	uint64_t length = 0;
	uint32_t rkey = 0;
	uint32_t lkey = 0;
	uint8_t access = 0;
};

/** REG_MR. */
struct RegisterRequest {
	uint64_t start = 0;
	uint64_t length = 0;
	uint32_t key = 0;
	uint8_t access = 0;
	hw::tern_hw_pages pages{};
};

/** A scatter/gather entry in host order. */
struct Sge {
	uint64_t addr = 0;
	uint32_t length = 0;
	uint32_t lkey = 0;
};

/** Valid types of a FLUSH, and the maximum size of its range. */
inline constexpr uint8_t kFlushTypes = TERN_FLUSH_GLOBAL | TERN_FLUSH_PERSISTENT;
inline constexpr uint32_t kMaxFlushRange = 1u << 31;

/** Size of an atomic operation, bytes. */
inline constexpr uint64_t kAtomicSize = 8;

enum class Access {
	Ok,
	Denied,    /* key, protection domain, bounds or rights */
	NeedPages, /* allowed, but pages on demand are absent: see Memory::fault() */
	Fault,     /* allowed, but the memory is not accessible */
};

/** Pages the host must provide: a range of a region whose first byte is absent. */
struct PageFault {
	uint64_t addr = 0; /* in the region's address space */
	uint32_t length = 0;
	uint32_t key = 0;
	bool write = false;
};

inline constexpr uint64_t kMaxRegionSize = 1ull << 46;
/* On demand: all that the tables address, so that a region can be a whole address space. */
inline constexpr uint64_t kMaxOnDemandSize = 1ull << 48;
/* One fault asks for at most this much of a message. */
inline constexpr uint64_t kMaxPageFault = 1ull << 20;

/* Keys (tern_hw.h). */
inline constexpr unsigned kKeyIndexShift = 8;
inline constexpr uint32_t kKeyVariantMask = 0xff;

inline uint32_t Region::key() const
{
	return index << kKeyIndexShift | variant;
}

/** Whether a region may have these rights: remote write or atomic requires local write (IBA
 * 10.6.3.1). */
constexpr bool region_access_valid(uint8_t access)
{
	constexpr uint8_t kRights = TERN_ACCESS_LOCAL_WRITE | TERN_ACCESS_REMOTE_WRITE |
	                            TERN_ACCESS_REMOTE_READ | TERN_ACCESS_REMOTE_ATOMIC |
	                            TERN_ACCESS_MW_BIND | TERN_ACCESS_FLUSH_GLOBAL;
	constexpr uint8_t kNeedLocalWrite = TERN_ACCESS_REMOTE_WRITE | TERN_ACCESS_REMOTE_ATOMIC;
	return !(access & ~kRights) &&
	       (!(access & kNeedLocalWrite) || (access & TERN_ACCESS_LOCAL_WRITE));
}

/** All regions and windows of the card, and every access to memory by key. */
class Memory {
public:
	/** @device: the card's own memory, or empty. */
	Memory(HostMemory &host, uint32_t max_regions, std::span<std::byte> device = {},
	       uint32_t base = 0);

	/** The key of the new region or window, of the process with doorbell page @owner; none if
	 * the table is full or the process has its share. */
	std::optional<uint32_t> create(Region &&region, uint32_t owner = 0);
	/** The region or window with @key, variant included; null if there is none. */
	const Region *find(uint32_t key) const;

	/** Replaces the registered region of @key, which has no bound windows. */
	void replace(uint32_t key, const Region &region);

	enum class Destroyed {
		Done,
		Missing, /* does not exist */
		Busy,    /* has a bound window */
	};
	/** For a region of fast registration the variant is ignored, because work requests change
	 * it. */
	Destroyed destroy_region(uint32_t key);
	/** The variant is ignored. */
	Destroyed destroy_window(uint32_t key);
	/** The protection domain of the region or window at the index of @key; 0 if there is
	 * none. */
	uint32_t pdn_of(uint32_t key) const;

	/** The protection domain that is checked for local access, and whether LOCAL_DMA keys are
	 * allowed. */
	struct Domain {
		uint32_t pdn;
		bool kernel;
	};

	/** The QP through which a peer accesses memory. */
	struct Target {
		uint32_t pdn;
		uint32_t qpn;
	};

	/* Work requests on keys (IBA 10.6.5 to 10.6.7). The caller checks a request, recalls the
	 * payload that was lent by the key, and then executes the request. A refused request may
	 * name a key of another process, so it must not recall anything. */
	/** BIND_MW through @target. */
	bool may_bind(const BindRequest &request, Target target) const;
	/** @request is one that may_bind() allows. */
	void bind(const BindRequest &request, Target target);
	enum class Invalidator {
		Host, /* LOCAL_INV */
		Peer, /* SEND with invalidate: only keys with remote rights */
	};
	bool may_invalidate(uint32_t key, Target target, Invalidator by) const;
	/** @key is one that may_invalidate() allows. */
	void invalidate(uint32_t key);
	/** REG_MR through a QP of @pdn. Returns false without effect if it is not allowed. */
	bool register_fast(const RegisterRequest &request, uint32_t pdn);
	/** QP @qpn is destroyed or reset: unbinds windows bound through it, up to @budget. Returns
	 * whether none is left. */
	bool release_windows(uint32_t qpn, unsigned &budget);

	/** Checks that all of @sges may be read (@write: written) by their lkeys. Zero-length
	 * entries are not checked. */
	Access check_local(std::span<const Sge> sges, Domain domain, bool write) const;
	/** Copies bytes [@offset, @offset + to.size()) of the concatenated @sges, with the checks
	 * of check_local(). */
	Access gather(std::span<const Sge> sges, Domain domain, uint64_t offset,
	              std::span<std::byte> to);
	Access scatter(std::span<const Sge> sges, Domain domain, uint64_t offset,
	               const Payload &from);
	/** Finds the host memory of @size bytes from @offset on, to be lent. Returns false if it is
	 * device memory, absent, in too many ranges, or not allowed. */
	bool locate(std::span<const Sge> sges, Domain domain, uint64_t offset, size_t size,
	            HostRanges &ranges);

	/** Checks that a peer may access [@va, @va + @length) by @rkey with all of @rights
	 * (TERN_ACCESS_REMOTE_*). Zero length is always Ok (IBA 9.7.4.1.3). */
	Access check_remote(uint32_t rkey, uint64_t va, uint64_t length, Target target,
	                    uint8_t rights) const;
	/** Checks that a peer may flush these bytes, or with @whole the whole region. Zero length
	 * also needs the right. */
	Access check_flush(uint32_t rkey, uint64_t va, uint64_t length, bool whole,
	                   Target target) const;
	/** Copies, with the checks of check_remote(). @ahead: bytes the same message will access
	 * after these. */
	Access read_remote(uint32_t rkey, uint64_t va, Target target, std::span<std::byte> to,
	                   uint64_t ahead = 0);
	Access write_remote(uint32_t rkey, uint64_t va, Target target, const Payload &from,
	                    uint64_t ahead = 0);
	/** As locate(), for a peer with the right to read. */
	bool locate_remote(uint32_t rkey, uint64_t va, Target target, size_t size,
	                   HostRanges &ranges);
	/** Replaces the 8 bytes at @va (aligned, checked for @right) by @update of them; sets
	 * @original to the old value. */
	template <typename Update>
	Access atomic_remote(uint32_t rkey, uint64_t va, Target target, uint64_t &original,
	                     Update update, uint8_t right = TERN_ACCESS_REMOTE_ATOMIC);

	/** The fault of the last access that returned NeedPages. */
	const PageFault &fault() const { return fault_; }

	const DeviceMemory &device() const { return device_; }
	/** Direct access for rings and records, which have no key. */
	HostMemory &host() { return host_; }
	TableCache &tables() { return tables_; }

private:
	/* The region of TERN_LKEY_NULL. It has no memory. */
	static inline const Region kNullRegion{};
	/* The region of @sge, null for LOCAL_DMA, if @domain may access all of it; else none. */
	std::optional<const Region *> authorize(const Sge &sge, Domain domain, bool write) const;
	/* The region of @rkey if a peer may access it so; else null. */
	const Region *authorize_remote(uint32_t rkey, uint64_t va, uint64_t length, Target target,
	                               uint8_t rights) const;
	/* The object at the index of @key, with any variant. */
	Region *at_index(uint32_t key) const;
	void unbind(Region &window);
	/** Adds @window to the bound ones of its QP, or takes it out. */
	void link(Region &window);
	void unlink(Region &window);
	template <typename Byte>
	Access transfer(std::span<const Sge> sges, Domain domain, uint64_t offset,
	                std::span<Byte> data);
	template <typename Byte>
	Access copy(const Region *region, uint64_t addr, std::span<Byte> data, uint64_t ahead);
	bool locate(const Region *region, uint64_t addr, size_t size, HostRanges &ranges);
	void note_fault(const Region &region, uint64_t offset, uint64_t length, bool write);
	/* The location of an atomic operation. */
	struct Word {
		HostMemory *memory;
		Iova iova;
	};
	Access load_atomic(uint32_t rkey, uint64_t va, Target target, uint8_t right, Word &word,
	                   uint64_t &original);
	HostMemory &memory_of(const Region &region)
	{
		return region.device ? static_cast<HostMemory &>(device_) : host_;
	}

	HostMemory &host_;
	DeviceMemory device_;
	TableCache tables_;
	ObjectTable<Region> regions_;
	/* Index of the first window of type 2 bound through each QP that has some. */
	std::unordered_map<uint32_t, uint32_t> bound_;
	PageFault fault_;
};

template <typename Update>
Access Memory::atomic_remote(uint32_t rkey, uint64_t va, Target target, uint64_t &original,
                             Update update, uint8_t right)
{
	Word word;
	host_.lock_atomics();
	Access access = load_atomic(rkey, va, target, right, word, original);
	if (access == Access::Ok && !word.memory->store_release(word.iova, update(original)))
		access = Access::Fault;
	host_.unlock_atomics();
	return access;
}

} // namespace tern
