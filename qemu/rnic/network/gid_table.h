/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "qemu/rnic/formats/packet.h"
#include "tern/tern_hw.h"

namespace tern {

struct GidEntry {
	hw::tern_hw_gid_type type = hw::TERN_GID_NONE;
	uint16_t vlan = kNoVlan;
	Gid gid;
};

/** The GIDs of the card. */
class GidTable {
public:
	explicit GidTable(size_t size) : entries_(size) {}

	size_t size() const { return entries_.size(); }
	void set(size_t index, const GidEntry &entry) { entries_[index] = entry; }
	/** Null if the index is invalid or the entry empty. */
	const GidEntry *find(size_t index) const;
	/** Whether the packet's destination, with its VLAN and protocol, is in the table. */
	bool has_destination(const PathInfo &path) const;

private:
	std::vector<GidEntry> entries_;
};

} // namespace tern
