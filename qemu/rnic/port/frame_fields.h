/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tern/tern_hw.h"

namespace tern {

/** The fields of a frame that flows match. */
struct FrameFields {
	/** As in the frame; zero for absent fields. */
	hw::tern_hw_flow_key key{};
	bool has_vlan = false;
	uint8_t ip_version = 0; /* 4, 6, or 0 for other frames */
	bool has_ports = false; /* TCP or UDP, and not a later fragment */
	bool fragment = false;  /* of IPv4, the first one included */
};

/** @frame has at least an Ethernet header. */
FrameFields read_fields(std::span<const std::byte> frame);

/** The network layer packet in an Ethernet frame. */
struct NetworkPacket {
	uint16_t ethertype; /* after a VLAN tag */
	size_t offset;
};

/** None if @frame is too short. */
std::optional<NetworkPacket> network_packet(std::span<const std::byte> frame);

} // namespace tern
