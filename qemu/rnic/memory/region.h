/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "qemu/rnic/control/object_table.h"
#include "qemu/rnic/memory/page_list.h"
#include "qemu/rnic/ports.h"
#include "tern/tern_hw.h"

namespace tern {

/** A memory region: [start, start + length) of some protection domain, with rights. */
struct Region {
	uint64_t start = 0;
	uint64_t length = 0;
	uint32_t pdn = 0;
	uint8_t access = 0; /* TERN_ACCESS_* */
	uint8_t variant = 0;
	PageList pages;
};

/** A local buffer of a work request, in host order. */
struct Sge {
	uint64_t addr = 0;
	uint32_t length = 0;
	uint32_t lkey = 0;
};

enum class Access {
	Ok,
	Denied, /* key, protection domain, bounds or rights */
	Fault,  /* allowed, but the memory behind it is not reachable */
};

/** All regions of the card, and every access to registered memory: the only way from a key to
 * bytes. */
class Memory {
public:
	Memory(HostMemory &host, uint32_t max_regions);

	/** The key of the new region, or nothing when the table is full. */
	std::optional<uint32_t> create(Region region);
	/** The region of @key, variant included; null when there is none. */
	const Region *find(uint32_t key) const;
	/** False when there is none. */
	bool destroy(uint32_t key);
	/** True when some region is of protection domain @pdn. */
	bool uses_pd(uint32_t pdn) const;
	void clear();

	/** Whose access is checked: the queue's protection domain, and whether LOCAL_DMA keys are
	 * allowed. */
	struct Domain {
		uint32_t pdn;
		bool kernel;
	};

	/** Whether all of @sges may be read (@write: written) by their lkeys. Zero-length entries
	 * are not checked. */
	Access check_local(std::span<const Sge> sges, Domain domain, bool write) const;
	/** Copies the bytes [@offset, @offset + to.size()) of the list @sges taken as one string.
	 * Checks as check_local(). */
	Access gather(std::span<const Sge> sges, Domain domain, uint64_t offset,
	              std::span<std::byte> to);
	Access scatter(std::span<const Sge> sges, Domain domain, uint64_t offset,
	               std::span<const std::byte> from);

	/** Whether a peer may access [@va, @va + @length) by @rkey with all rights of @rights
	 * (TERN_ACCESS_REMOTE_*). Zero length is always Ok (IBA 9.7.4.1.3). */
	Access check_remote(uint32_t rkey, uint64_t va, uint64_t length, uint32_t pdn,
	                    uint8_t rights) const;
	/** Checks as check_remote() and copies. */
	Access read_remote(uint32_t rkey, uint64_t va, uint32_t pdn, std::span<std::byte> to);
	Access write_remote(uint32_t rkey, uint64_t va, uint32_t pdn,
	                    std::span<const std::byte> from);
	/** Runs @update on the 8 bytes at @va (aligned, checked for REMOTE_ATOMIC) and stores its
	 * result; the value before in @original. */
	template <typename Update>
	Access atomic_remote(uint32_t rkey, uint64_t va, uint32_t pdn, uint64_t &original,
	                     Update update);

	/** Rings and records, which have no key. */
	HostMemory &host() { return host_; }
	TableCache &tables() { return tables_; }

private:
	/* The region that @sge names, null for LOCAL_DMA, if @domain may access all of it. */
	std::optional<const Region *> authorize(const Sge &sge, Domain domain, bool write) const;
	/* The region of @rkey, if a peer may access it so. */
	const Region *authorize_remote(uint32_t rkey, uint64_t va, uint64_t length, uint32_t pdn,
	                               uint8_t rights) const;
	template <typename Byte>
	Access transfer(std::span<const Sge> sges, Domain domain, uint64_t offset,
	                std::span<Byte> data);
	template <typename Byte>
	bool copy(const Region *region, uint64_t addr, std::span<Byte> data);
	Access load_atomic(uint32_t rkey, uint64_t va, uint32_t pdn, Iova &iova,
	                   uint64_t &original);

	HostMemory &host_;
	TableCache tables_;
	ObjectTable<Region> regions_;
};

template <typename Update>
Access Memory::atomic_remote(uint32_t rkey, uint64_t va, uint32_t pdn, uint64_t &original,
                             Update update)
{
	Iova iova;
	const Access access = load_atomic(rkey, va, pdn, iova, original);
	if (access != Access::Ok)
		return access;
	return host_.store_release(iova, update(original)) ? Access::Ok : Access::Fault;
}

} // namespace tern
