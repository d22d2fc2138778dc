// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive WQEs, whose format is the same in receive queues and SRQs. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <infiniband/verbs.h>

namespace tern::provider {

/**
 * Whether @size bytes are exactly @entries WQEs of 1 << @log_stride bytes, @entries is a power of
 * two and a WQE holds @max_sge segments.
 */
bool recv_geometry_ok(size_t size, uint32_t entries, uint8_t log_stride, uint32_t max_sge);

/** Writes the WQE of @sges to @wqe, which has room for it. */
void put_recv_wqe(std::span<std::byte> wqe, std::span<const ibv_sge> sges);

} // namespace tern::provider
