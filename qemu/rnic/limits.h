/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits reported by QUERY_DEVICE. */
#pragma once

#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

inline constexpr uint32_t kMaxQps = 1u << 17;
inline constexpr uint32_t kGsiQpn = 1; /* IBA 3.9.3 */
inline constexpr uint32_t kMaxCqs = 1u << 17;
inline constexpr uint32_t kMaxRegions = (1u << hw::TERN_ENGINE_SHIFT) - 1;
inline constexpr uint32_t kMaxPds = 1u << 16;
inline constexpr uint32_t kMaxSrqs = 1u << 16;
inline constexpr uint32_t kMaxWqs = 1u << 16;
inline constexpr uint32_t kMaxWqTables = 1u << 12;
inline constexpr uint32_t kMaxXrcds = 1u << 16;
inline constexpr uint32_t kMaxStatsSets = 1u << 12;
inline constexpr uint32_t kMaxCompletionCounters = 1u << 16;
inline constexpr uint32_t kMaxGids = 128;
inline constexpr uint32_t kMaxMessage = 1u << 31;
inline constexpr uint8_t kMaxLogSq = 18;
inline constexpr uint8_t kMaxLogRq = 16;
inline constexpr uint8_t kMaxLogSrq = 16;
inline constexpr uint32_t kMaxTagQueues = 1u << 12;
inline constexpr uint8_t kMaxLogTags = 10;
inline constexpr uint8_t kMaxLogTagOps = 10;
inline constexpr uint8_t kMaxLogCq = 22;
inline constexpr uint8_t kMaxLogEq = 16;
inline constexpr uint8_t kMaxRdAtomic = 16;
inline constexpr uint8_t kAckDelay = 15;

} // namespace tern
