// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/network/gid_table.h"

#include <algorithm>

namespace tern {

using namespace hw;

void GidTable::set(size_t index, const GidEntry &entry)
{
	entries_[index] = entry;
	macs_.clear();
	for (const GidEntry &e : entries_)
		if (e.type != TERN_GID_NONE && e.mac != Mac{})
			macs_.insert(e.mac);
}

const GidEntry *GidTable::find(size_t index) const
{
	if (index >= entries_.size() || entries_[index].type == TERN_GID_NONE)
		return nullptr;
	return &entries_[index];
}

const GidEntry *GidTable::destination(const PathInfo &path) const
{
	const auto type = path.roce_v2 ? TERN_GID_ROCE_V2 : TERN_GID_ROCE_V1;
	const auto found = std::ranges::find_if(entries_, [&](const GidEntry &e) {
		return e.type == type && e.is_in(path.vlan) && e.gid == path.dgid;
	});
	return found == entries_.end() ? nullptr : &*found;
}

} // namespace tern
