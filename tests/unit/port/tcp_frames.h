/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of TCP and UDP, and their checksums as RFC 1071 defines them, word by word. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tern::test {

using Frame = std::vector<std::byte>;

/** A frame from the peer (10.0.0.2, fd00::2) to the card, or from the card to the peer. */
struct TestFrame {
	bool ipv6 = false;
	bool vlan = false;
	bool to_card = true;
	uint8_t protocol = 6;
	size_t ip_options = 0;  /* bytes */
	size_t tcp_options = 0; /* bytes */
	uint16_t id = 0;
	uint16_t fragment = 0;
	uint16_t sport = 1000;
	uint32_t sequence = 0;
	uint8_t flags = 0x10;
	size_t payload = 0;

	size_t ip_offset() const { return vlan ? 18 : 14; }
	size_t ip_header() const { return ipv6 ? 40 : 20 + ip_options; }
	size_t l4_offset() const { return ip_offset() + ip_header(); }
	size_t l4_header() const { return protocol == 6 ? 20 + tcp_options : 8; }
	size_t csum_offset() const { return protocol == 6 ? 16 : 6; }

	/** With right checksums. */
	Frame build() const;
	/** With the sum of the pseudo header alone, as a host leaves it to the card. */
	Frame build_partial() const;
};

uint16_t get16(std::span<const std::byte> frame, size_t at);
uint32_t get32(std::span<const std::byte> frame, size_t at);
void put16(std::span<std::byte> frame, size_t at, uint32_t value);

/** The one's complement sum of @bytes and @start. */
uint16_t reference_sum(std::span<const std::byte> bytes, uint32_t start = 0);
/** What TCP or UDP of @frame and its pseudo header add up to: 0xffff when the checksum is right. */
uint16_t l4_sum(const TestFrame &shape, std::span<const std::byte> frame);

} // namespace tern::test
