/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "qemu/rnic/formats/opcode.h"
#include "qemu/rnic/limits.h"

namespace tern {

/** PSNs of all outstanding requests; beyond 2^23 their order is ambiguous (IBA 9.7.1). */
inline constexpr uint32_t kMaxPsns = (1u << 23) - 1;

/** The number of packets of a message of @length bytes; an empty message takes one. */
constexpr uint32_t packets_of(uint64_t length, uint32_t mtu)
{
	return length > mtu ? static_cast<uint32_t>((length + mtu - 1) / mtu) : 1;
}

/** Whether a message of @length bytes is one of a reliable service. With the smallest MTU the
 * longest messages have one PSN too many. */
constexpr bool message_fits(uint64_t length, uint32_t mtu)
{
	return length <= kMaxMessage && packets_of(length, mtu) <= kMaxPsns;
}

/** Returns whether a SEND may go on with @size bytes after @placed bytes: neither the @room of its
 * receive WQE nor the longest message is exceeded. */
constexpr bool send_fits(uint64_t placed, size_t size, uint64_t room)
{
	return placed + size <= std::min<uint64_t>(room, kMaxMessage);
}

/** All packets but the last carry one MTU; the last of several is not empty (IBA 9.7.4.1.6). */
constexpr bool payload_fits(const OpcodeInfo &info, size_t size, uint32_t mtu)
{
	if (!info.last)
		return size == mtu;
	return size <= mtu && (info.first || size > 0);
}

} // namespace tern
