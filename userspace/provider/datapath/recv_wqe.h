// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive WQEs, which are the same in the queue of a QP and in an SRQ. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <infiniband/verbs.h>

namespace tern::provider {

/** Whether @entries (a power of two) WQEs of 1 << @log_stride bytes with @max_sge fill @size. */
bool recv_geometry_ok(size_t size, uint32_t entries, uint8_t log_stride, uint32_t max_sge);

/** Writes a WQE of @sges, for which there is room, over all of @wqe. */
void put_recv_wqe(std::span<std::byte> wqe, std::span<const ibv_sge> sges);

} // namespace tern::provider
