/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "qemu/shm/message.h"

namespace tern::shm {

/* Twice the maximum number of addresses in the switch. */
constexpr size_t kAddressSlots = 8192;

/** An Ethernet address in @frame as a number, its first byte in 47:40; @offset 0 is the
 * destination, 6 the source. */
inline uint64_t address_at(std::span<const std::byte> frame, size_t offset)
{
	uint64_t address = 0;
	for (const std::byte byte : frame.subspan(offset, 6))
		address = address << 8 | std::to_integer<uint64_t>(byte);
	return address;
}

/**
 * The table that the switch publishes to all hosts in memory they can only read: which host has
 * each address (a hash table with linear probing), and the lanes. A reader may find an entry that
 * was just removed, or miss one while others move; that is harmless, as frames without an entry go
 * through the switch.
 */
struct AddressPage {
	/* Every frame must pass through the switch, which counts, damages or records it. */
	alignas(64) std::atomic<uint32_t> through_switch;
	/* Bit i: host i is the primary of a card with several lanes. */
	std::atomic<uint64_t> with_lanes;
	/* address in 63:16, 1 + host id in 15:0; 0: empty */
	alignas(64) std::atomic<uint64_t> slots[kAddressSlots];
	/* 1 + host id of each lane, in the row of the primary; 0: none */
	alignas(64) std::atomic<uint16_t> lanes[kMaxHosts][kMaxLanes];

	static constexpr size_t first_slot(uint64_t address)
	{
		return (address * 0x9e3779b97f4a7c15) >> 51;
	}

	std::optional<uint32_t> find(uint64_t address) const
	{
		for (size_t i = 0; i < kAddressSlots; i++) {
			const size_t slot = (first_slot(address) + i) % kAddressSlots;
			const uint64_t entry = slots[slot].load(std::memory_order_relaxed);
			if (entry == 0)
				return std::nullopt;
			if (entry >> 16 == address)
				return static_cast<uint32_t>(entry & 0xffff) - 1;
		}
		return std::nullopt;
	}

	bool has_lanes(uint32_t host) const
	{
		return with_lanes.load(std::memory_order_relaxed) >> host & 1;
	}
	/** The host id of a lane of @host; @host itself if that lane does not exist. */
	uint32_t lane_of(uint32_t host, uint32_t lane) const
	{
		const uint32_t entry = lanes[host][lane].load(std::memory_order_relaxed);
		return entry ? entry - 1 : host;
	}
};
static_assert(kMaxHosts <= 64);
static_assert((1 << (64 - 51)) == kAddressSlots);

} // namespace tern::shm
