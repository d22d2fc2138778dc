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
/** The longest pause. */
inline constexpr uint16_t kMaxQuanta = 0xffff;

inline constexpr size_t kPauseFrameSize = 60;
using PauseFrame = std::array<std::byte, kPauseFrameSize>;

/** What a pause frame says of each priority, in quanta; none: nothing. */
using PauseTimes = std::array<std::optional<uint16_t>, kPriorities>;

/** Returns a frame that pauses one priority. Its source address is zero: ports of a switch have no
 * address here. */
PauseFrame pause_frame(uint8_t priority, uint16_t quanta);

/** None if the frame is not such a frame. */
std::optional<PauseTimes> parse_pause(std::span<const std::byte> frame);

/** The priority of a frame that the card sends, by the VLAN tag, or, if @by_dscp, by the upper
 * three bits of the DSCP; 0 without. @frame may end after the IP header. */
unsigned priority_of(std::span<const std::byte> frame, bool by_dscp);

} // namespace tern
