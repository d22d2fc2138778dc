/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of priority-based flow control (IEEE 802.1Qbb), and the priority of frames. */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tern {

inline constexpr unsigned kPriorities = 8;
/** Unit of pause times, bit times of the link. */
inline constexpr uint64_t kPauseQuantum = 512;

/** What a pause frame says of each priority, in quanta; none: nothing. */
using PauseTimes = std::array<std::optional<uint16_t>, kPriorities>;

/** None if the frame is not such a frame. */
std::optional<PauseTimes> parse_pause(std::span<const std::byte> frame);

/** The priority of a frame that the card sends, by the VLAN tag, or, if @by_dscp, by the upper
 * three bits of the DSCP; 0 without. @frame may end after the IP header. */
unsigned priority_of(std::span<const std::byte> frame, bool by_dscp);

} // namespace tern
