/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames that the card cuts into TCP segments: a send WQE with an MSS. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tern {

/** Where the headers are that each segment has a copy of. */
struct TcpHeaders {
	size_t ip = 0;
	size_t tcp = 0;
	size_t payload = 0;
	bool ipv4 = false;
};

/** Reads them from the first bytes of a frame whose TCP header is at @tcp; as many bytes of that as
 * have no options suffice. Nothing when it is no TCP frame. */
std::optional<TcpHeaders> find_tcp_headers(std::span<const std::byte> head, size_t tcp);

/** Which part of the payload a segment has. */
struct TcpSegment {
	size_t offset;
	size_t size;
	size_t index;
	size_t whole; /* bytes of all segments */

	bool last() const { return offset + size == whole; }
};

/** Makes @frame, which has the headers of the whole and the payload of @segment, a frame of its
 * own. */
void finish_segment(std::span<std::byte> frame, const TcpHeaders &at, const TcpSegment &segment);

} // namespace tern
