/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>

#include "tern/endian.hpp"

namespace tern::headers {

inline constexpr uint8_t kProtoTcp = 6;

/** RFC 9293, 3.1. */
struct Tcp {
	Be<uint16_t> source;
	Be<uint16_t> destination;
	Be<uint32_t> sequence;
	Be<uint32_t> acknowledgment;
	uint8_t data_offset; /* in 7:4, in units of 4 bytes */
	uint8_t flags;
	Be<uint16_t> window;
	Be<uint16_t> checksum;
	Be<uint16_t> urgent;
};
inline constexpr uint8_t kTcpFin = 0x01;
inline constexpr uint8_t kTcpPsh = 0x08;
inline constexpr uint8_t kTcpCwr = 0x80;

static_assert(sizeof(Tcp) == 20 && alignof(Tcp) == 1);

} // namespace tern::headers
