/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The integer types of the interface, for C and C++, and static_assert(). */
#ifndef TERN_HW_TYPES_H
#define TERN_HW_TYPES_H

#ifdef __cplusplus
#include <cstdint>

#include "tern/endian.hpp"

namespace tern::hw {
/* Shadow the names of <linux/types.h> by types that swap and check. */
using __u8 = uint8_t;
using __le16 = Le<uint16_t>;
using __le32 = Le<uint32_t>;
using __le64 = Le<uint64_t>;
using __be16 = Be<uint16_t>;
using __be32 = Be<uint32_t>;
} /* namespace tern::hw */
#else
#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#else
#include <assert.h>
#endif
#endif

#endif /* TERN_HW_TYPES_H */
