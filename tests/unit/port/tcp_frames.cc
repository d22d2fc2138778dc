// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/unit/port/tcp_frames.h"

#include <algorithm>

#include "tests/support/one_card.h"

namespace tern::test {

uint16_t get16(std::span<const std::byte> frame, size_t at)
{
	return static_cast<uint16_t>(std::to_integer<unsigned>(frame[at]) << 8 |
	                             std::to_integer<unsigned>(frame[at + 1]));
}

uint32_t get32(std::span<const std::byte> frame, size_t at)
{
	return uint32_t{get16(frame, at)} << 16 | get16(frame, at + 2);
}

void put16(std::span<std::byte> frame, size_t at, uint32_t value)
{
	frame[at] = static_cast<std::byte>(value >> 8);
	frame[at + 1] = static_cast<std::byte>(value);
}

uint16_t reference_sum(std::span<const std::byte> bytes, uint32_t start)
{
	uint32_t sum = start;
	for (size_t i = 0; i < bytes.size(); i++) {
		const uint32_t byte = std::to_integer<uint32_t>(bytes[i]);
		sum += i % 2 ? byte : byte << 8;
		if (sum > 0xffff)
			sum -= 0xffff;
	}
	return static_cast<uint16_t>(sum);
}

namespace {

uint16_t pseudo_sum(const TestFrame &shape, std::span<const std::byte> frame)
{
	const size_t addresses = shape.ip_offset() + (shape.ipv6 ? 8 : 12);
	const auto length = static_cast<uint32_t>(frame.size() - shape.l4_offset());
	const uint32_t rest = shape.protocol + (length >> 16) + (length & 0xffff);
	return reference_sum(frame.subspan(addresses, shape.ipv6 ? 32 : 8), rest % 0xffff);
}

void put_link(const TestFrame &shape, Frame &frame)
{
	const Mac &to = shape.to_card ? kCardMac : kPeerMac;
	const Mac &from = shape.to_card ? kPeerMac : kCardMac;
	std::memcpy(frame.data(), to.data(), 6);
	std::memcpy(frame.data() + 6, from.data(), 6);
	if (shape.vlan) {
		put16(frame, 12, 0x8100);
		put16(frame, 14, 0x2005);
	}
	put16(frame, shape.ip_offset() - 2, shape.ipv6 ? 0x86dd : 0x0800);
}

void put_ipv4(const TestFrame &shape, std::span<std::byte> ip)
{
	const auto header = ip.first(shape.ip_header());
	ip[0] = static_cast<std::byte>(0x40 | header.size() / 4);
	put16(ip, 2, static_cast<uint32_t>(ip.size()));
	put16(ip, 4, shape.id);
	put16(ip, 6, shape.fragment);
	ip[8] = std::byte{64};
	ip[9] = std::byte{shape.protocol};
	put16(ip, 12, 0x0a00);
	put16(ip, 14, shape.to_card ? 2 : 1);
	put16(ip, 16, 0x0a00);
	put16(ip, 18, shape.to_card ? 1 : 2);
	std::ranges::fill(header.subspan(20), std::byte{1}); /* no operation */
	put16(ip, 10, 0xffffu - reference_sum(header));
}

void put_ipv6(const TestFrame &shape, std::span<std::byte> ip)
{
	ip[0] = std::byte{0x60};
	put16(ip, 4, static_cast<uint32_t>(ip.size() - 40));
	ip[6] = std::byte{shape.protocol};
	ip[7] = std::byte{64};
	ip[8] = ip[24] = std::byte{0xfd};
	ip[23] = std::byte{shape.to_card ? uint8_t{2} : uint8_t{1}};
	ip[39] = std::byte{shape.to_card ? uint8_t{1} : uint8_t{2}};
}

void put_l4(const TestFrame &shape, std::span<std::byte> l4)
{
	put16(l4, 0, shape.sport);
	put16(l4, 2, 2000);
	if (shape.protocol == 17) {
		put16(l4, 4, static_cast<uint32_t>(l4.size()));
	} else {
		put16(l4, 4, shape.sequence >> 16);
		put16(l4, 6, shape.sequence);
		l4[12] = static_cast<std::byte>(shape.l4_header() / 4 << 4);
		l4[13] = std::byte{shape.flags};
		std::ranges::fill(l4.subspan(20, shape.tcp_options), std::byte{1});
	}
	for (size_t i = shape.l4_header(); i < l4.size(); i++)
		l4[i] = static_cast<std::byte>(i * 37 + i / 256);
}

} // namespace

Frame TestFrame::build_partial() const
{
	Frame frame(l4_offset() + l4_header() + payload);
	put_link(*this, frame);
	const auto ip = std::span(frame).subspan(ip_offset());
	if (ipv6)
		put_ipv6(*this, ip);
	else
		put_ipv4(*this, ip);
	put_l4(*this, std::span(frame).subspan(l4_offset()));
	put16(frame, l4_offset() + csum_offset(), pseudo_sum(*this, frame));
	return frame;
}

Frame TestFrame::build() const
{
	Frame frame = build_partial();
	const uint16_t sum = reference_sum(std::span(frame).subspan(l4_offset()));
	const bool udp_zero = protocol == 17 && sum == 0xffff;
	put16(frame, l4_offset() + csum_offset(), udp_zero ? 0xffffu : 0xffffu - sum);
	return frame;
}

uint16_t l4_sum(const TestFrame &shape, std::span<const std::byte> frame)
{
	return reference_sum(frame.subspan(shape.l4_offset()), pseudo_sum(shape, frame));
}

} // namespace tern::test
