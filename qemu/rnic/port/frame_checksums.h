/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checksums of Ethernet frames: insertion on send, verification on receipt. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/** Writes the checksum of the bytes from @start on into the 16 bits at @start + @offset, which hold
 * the sum of the pseudo header. At the @offset of UDP's checksum a zero becomes 0xffff (RFC 768).
 * Returns false if the 16 bits are outside of the frame. */
bool put_checksum(std::span<std::byte> frame, size_t start, size_t offset);

/** The result of verifying a frame's checksums. */
struct Checksums {
	bool ip_ok = false; /* the IPv4 header checksum is right */
	bool l4_ok = false; /* the TCP or UDP checksum and those before it are right */
	bool bad = false;   /* a checksum is wrong */
};

/** Verifies the checksums of @frame. For a fragment, UDP over IPv4 without a checksum or another
 * protocol only the IPv4 header, if any, is verified. A frame that is not IP, or is shorter than
 * its IP header says, sets no flag. */
Checksums verify_checksums(std::span<const std::byte> frame);

} // namespace tern
