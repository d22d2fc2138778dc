/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where dma-bufs come from in a guest. */
#pragma once

#include <cstdint>

#include "peer.h"

namespace tern::guest {

inline constexpr char kUdmabuf[] = "/dev/udmabuf";

/** A dma-buf of vgem, the driver of no GPU. */
Socket vgem_buffer(uint32_t pages);
/** A dma-buf of a memory file, which may not shrink from then on. */
Socket memory_file_buffer(uint32_t pages);

} // namespace tern::guest
