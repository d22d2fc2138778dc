/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hash for receive-side scaling. */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/rnic/port/frame_fields.h"
#include "tern/tern_hw.h"

namespace tern {

using HashKey = std::array<uint8_t, hw::TERN_HASH_KEY_SIZE>;

/** The Toeplitz hash of @input, which is at least 4 bytes shorter than the key. */
uint32_t toeplitz(const HashKey &key, std::span<const std::byte> input);

/** The hash of those fields of @which (TERN_HASH_*) that the frame has, in the order source and
 * destination address, source and destination port; 0 if it has none. Ports of a fragment do not
 * count. */
uint32_t hash_of(const FrameFields &fields, uint32_t which, const HashKey &key);

} // namespace tern
