// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/network/multicast.h"

#include <algorithm>

namespace tern {

Mac multicast_mac(const Gid &mgid)
{
	const auto &b = mgid.bytes;
	if (mgid.is_ipv4())
		return {0x01, 0x00, 0x5e, static_cast<uint8_t>(b[13] & 0x7f), b[14], b[15]};
	return {0x33, 0x33, b[12], b[13], b[14], b[15]};
}

bool MulticastGroups::attach(const Gid &mgid, uint32_t qpn)
{
	auto group = groups_.find(mgid.bytes);
	if (group == groups_.end()) {
		if (groups_.size() == kMaxGroups)
			return false;
		group = groups_.try_emplace(mgid.bytes).first;
		macs_[multicast_mac(mgid)]++;
	}
	auto &members = group->second;
	if (std::ranges::find(members, qpn) != members.end())
		return true;
	if (members.size() == kMaxQps)
		return false;
	members.push_back(qpn);
	memberships_[qpn].push_back(mgid);
	return true;
}

bool MulticastGroups::detach(const Gid &mgid, uint32_t qpn)
{
	const auto group = groups_.find(mgid.bytes);
	if (group == groups_.end() || !std::erase(group->second, qpn))
		return false;
	/* From the end, where forget() takes them. */
	const auto of = memberships_.find(qpn);
	auto &mgids = of->second;
	mgids.erase(std::prev(std::find(mgids.rbegin(), mgids.rend(), mgid).base()));
	if (mgids.empty())
		memberships_.erase(of);
	if (group->second.empty())
		close(group);
	return true;
}

bool MulticastGroups::forget(uint32_t qpn, unsigned &budget)
{
	for (auto of = memberships_.find(qpn); of != memberships_.end();
	     of = memberships_.find(qpn)) {
		if (!budget)
			return false;
		budget--;
		detach(Gid(of->second.back()), qpn);
	}
	return true;
}

void MulticastGroups::close(Groups::iterator group)
{
	const auto mac = macs_.find(multicast_mac({group->first}));
	if (--mac->second == 0)
		macs_.erase(mac);
	groups_.erase(group);
}

std::span<const uint32_t> MulticastGroups::members(const Gid &mgid) const
{
	const auto group = groups_.find(mgid.bytes);
	if (group == groups_.end())
		return {};
	return group->second;
}

} // namespace tern
