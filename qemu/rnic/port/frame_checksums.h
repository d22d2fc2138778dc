/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checksums of Ethernet frames that the card puts in, and those that it verifies. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/** Puts the checksum of all from @start on into the 16 bits at @start + @offset, which hold the sum
 * of the pseudo header. False when they are not in the frame. */
bool put_checksum(std::span<std::byte> frame, size_t start, size_t offset);

/** What the checksums of a frame say. */
struct Checksums {
	bool ip_ok = false; /* that of the IPv4 header is right */
	bool l4_ok = false; /* that of TCP or UDP is right, and so is what comes before */
	bool bad = false;   /* one is wrong */
};

/** Fragments, UDP without a checksum, and what has no such headers, prove nothing. */
Checksums verify_checksums(std::span<const std::byte> frame);

} // namespace tern
