/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tern/tern_hw.h"

namespace tern {

/** What flows compare frames by. */
struct FrameFields {
	/** As in the frame; zero where it has no such field. */
	hw::tern_hw_flow_key key{};
	bool has_vlan = false;
	uint8_t ip_version = 0; /* 4, 6, or 0 for other frames */
	bool has_ports = false; /* TCP or UDP, and not a later fragment */
};

/** @frame has an Ethernet header at least. */
FrameFields read_fields(std::span<const std::byte> frame);

/** What an Ethernet frame carries. */
struct NetworkPacket {
	uint16_t ethertype; /* the one after a VLAN tag */
	size_t offset;
};

/** Nothing when @frame ends before. */
std::optional<NetworkPacket> network_packet(std::span<const std::byte> frame);

} // namespace tern
