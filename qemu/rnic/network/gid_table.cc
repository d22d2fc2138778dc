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

bool GidTable::has_destination(const PathInfo &path) const
{
	const auto type = path.roce_v2 ? TERN_GID_ROCE_V2 : TERN_GID_ROCE_V1;
	return std::ranges::any_of(entries_, [&](const GidEntry &e) {
		return e.type == type && e.vlan == path.vlan && e.gid == path.dgid;
	});
}

} // namespace tern
