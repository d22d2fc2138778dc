// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <array>
#include <limits>

#include "qemu/rnic/formats/packet.h"

namespace tern {

namespace {

/* IBA table 45, in units of 10 us. */
constexpr std::array<uint32_t, 32> kRnrTimers = {
        65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};
constexpr uint64_t kRnrUnitNs = 10'000;

/* IBA table 46; code 31: no credit count. */
constexpr std::array<uint32_t, 31> kCredits = {
        0,    1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
        48,   64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
        2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

} // namespace

uint64_t rnr_timer_ns(uint8_t code)
{
	return kRnrTimers[code & kAethValueMask] * kRnrUnitNs;
}

uint8_t encode_credits(uint32_t recv_wqes)
{
	const auto above = std::upper_bound(kCredits.begin(), kCredits.end(), recv_wqes);
	return static_cast<uint8_t>(above - kCredits.begin() - 1);
}

uint32_t decode_credits(uint8_t code)
{
	code &= kAethValueMask;
	return code == kCreditsInvalid ? std::numeric_limits<uint32_t>::max() : kCredits[code];
}

} // namespace tern
