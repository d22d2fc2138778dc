/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP segmentation offload: a send WQE with an MSS is cut into segments. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tern {

/** Offsets of the headers, which each segment has a copy of. */
struct TcpHeaders {
	size_t ip = 0;
	size_t tcp = 0;
	size_t payload = 0;
	bool ipv4 = false;
};

/** Locates the headers of a frame whose TCP header is at offset @tcp. @head has at least all bytes
 * up to the TCP options, which it may lack. Returns none if the frame is not TCP. */
std::optional<TcpHeaders> find_tcp_headers(std::span<const std::byte> head, size_t tcp);

/** A segment's part of the payload. */
struct TcpSegment {
	size_t offset;
	size_t size;
	size_t index;
	size_t whole; /* payload bytes of all segments */

	bool last() const { return offset + size == whole; }
};

/** Adjusts the headers of @frame, copied from the whole, for the payload of @segment. */
void finish_segment(std::span<std::byte> frame, const TcpHeaders &at, const TcpSegment &segment);

} // namespace tern
