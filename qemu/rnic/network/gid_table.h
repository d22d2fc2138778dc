/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "qemu/rnic/formats/packet.h"
#include "tern/tern_hw.h"

namespace tern {

struct GidEntry {
	hw::tern_hw_gid_type type = hw::TERN_GID_NONE;
	uint16_t vlan = kNoVlan;
	Gid gid;
	Mac mac{}; /* zero: the port's */

	/** Whether a packet that arrived in @received is in the entry's VLAN. An entry with VLAN id
	 * 0 sends priority tags, which name no VLAN: its packets are in none. */
	bool is_in(uint16_t received) const { return (vlan ? vlan : kNoVlan) == received; }
};

/** The GIDs of the card. */
class GidTable {
public:
	explicit GidTable(size_t size) : entries_(size) {}

	size_t size() const { return entries_.size(); }
	void set(size_t index, const GidEntry &entry);
	/** Null if the index is invalid or the entry empty. */
	const GidEntry *find(size_t index) const;
	/** Returns the entry that has the packet's destination, VLAN and protocol; null if there
	 * is none. */
	const GidEntry *destination(const PathInfo &path) const;
	/** Whether @dmac is the address of an entry, and not of the port. */
	bool listens(const Mac &dmac) const { return macs_.contains(dmac); }

private:
	std::vector<GidEntry> entries_;
	std::set<Mac> macs_; /* of the entries that have one */
};

} // namespace tern
