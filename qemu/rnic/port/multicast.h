/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "qemu/rnic/formats/gid.h"

namespace tern {

/** The Ethernet address that stands for a multicast GID (A17.4.5; RFC 1112, 2464). */
Mac multicast_mac(const Gid &mgid);

/** Which QPs receive what is sent to which multicast GID (IBA vol. 1, 10.5). */
class MulticastGroups {
public:
	static constexpr size_t kMaxGroups = 4096;
	static constexpr size_t kMaxQps = 256; /* in a group */

	/** False when there is no room; a QP that is attached already stays so. */
	bool attach(const Gid &mgid, uint32_t qpn);
	/** False when the QP was not attached. */
	bool detach(const Gid &mgid, uint32_t qpn);
	/** The QP goes away. */
	void forget(uint32_t qpn);

	/** Whether frames to @dmac may be for a group. */
	bool listens(const Mac &dmac) const { return macs_.contains(dmac); }
	/** The QPs attached to @mgid. */
	std::span<const uint32_t> members(const Gid &mgid) const;

private:
	using Groups = std::map<std::array<uint8_t, 16>, std::vector<uint32_t>>;

	Groups::iterator close_if_empty(Groups::iterator group);

	Groups groups_;
	std::map<Mac, size_t> macs_; /* groups of each */
};

} // namespace tern
