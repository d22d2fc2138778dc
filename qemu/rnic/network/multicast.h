/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "qemu/rnic/formats/gid.h"

namespace tern {

/** The Ethernet address of a multicast GID (A17.4.5; RFC 1112, 2464). */
Mac multicast_mac(const Gid &mgid);

/** The QPs attached to each multicast GID (IBA vol. 1, 10.5). */
class MulticastGroups {
public:
	static constexpr size_t kMaxGroups = 4096;
	static constexpr size_t kMaxQps = 256; /* per group */

	/** Returns false if there is no room. Attaching a QP twice has no effect. */
	bool attach(const Gid &mgid, uint32_t qpn);
	/** Returns false if the QP was not attached. */
	bool detach(const Gid &mgid, uint32_t qpn);
	/** The QP is being destroyed: detaches it from up to @budget groups. Returns whether none
	 * is left. */
	bool forget(uint32_t qpn, unsigned &budget);

	/** Whether @dmac is the address of a group with members. */
	bool listens(const Mac &dmac) const { return macs_.contains(dmac); }
	/** The QPs attached to @mgid. */
	std::span<const uint32_t> members(const Gid &mgid) const;

private:
	using Groups = std::map<std::array<uint8_t, 16>, std::vector<uint32_t>>;

	void close(Groups::iterator group);

	Groups groups_;
	std::unordered_map<uint32_t, std::vector<Gid>> memberships_; /* by QP */
	std::map<Mac, size_t> macs_; /* number of groups per address */
};

} // namespace tern
