/* SPDX-License-Identifier: GPL-2.0-or-later */
/* By which hash a QP of CREATE_RSS_QP spreads frames. */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/rnic/port/frame_fields.h"
#include "tern/tern_hw.h"

namespace tern {

using HashKey = std::array<uint8_t, hw::TERN_HASH_KEY_SIZE>;

/** The Toeplitz hash of @input, which is 4 bytes shorter than the key at least. */
uint32_t toeplitz(const HashKey &key, std::span<const std::byte> input);

/** The hash of those of the fields @which (TERN_HASH_*) that the frame has: source and destination
 * address, source and destination port. Without any of them it is 0. */
uint32_t hash_of(const FrameFields &fields, uint32_t which, const HashKey &key);

} // namespace tern
