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

/** The card's own addresses. */
class GidTable {
public:
	explicit GidTable(size_t size) : entries_(size) {}

	size_t size() const { return entries_.size(); }
	void set(size_t index, const GidEntry &entry) { entries_[index] = entry; }
	/** Null when the entry is empty, or there is none of that index. */
	const GidEntry *find(size_t index) const;
	/** Whether a packet that came so is addressed to one of these, in its VLAN and protocol. */
	bool has_destination(const PathInfo &path) const;

private:
	std::vector<GidEntry> entries_;
};

} // namespace tern
