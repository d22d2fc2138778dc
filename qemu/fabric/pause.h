/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of priority-based flow control (IEEE 802.1Qbb): pure functions on bytes. */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "qemu/fabric/classify.h"

namespace tern::fabric {

struct Pause {
	uint8_t priorities = 0; /* bit N: quanta[N] counts */
	std::array<uint16_t, kPriorities> quanta{};
};
/** The longest pause. A quantum is the time of 512 bits at the rate of the link. */
inline constexpr uint16_t kMaxQuanta = 0xffff;

inline constexpr size_t kPauseFrameSize = 60;
using PauseFrame = std::array<std::byte, kPauseFrameSize>;

/** A pause frame of one priority. Its source address is zero: ports have none here. */
PauseFrame pause_frame(uint8_t priority, uint16_t quanta);
/** None if @frame is anything else. */
std::optional<Pause> parse_pause(std::span<const std::byte> frame);

} // namespace tern::fabric
