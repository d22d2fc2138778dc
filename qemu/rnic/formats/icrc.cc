// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/formats/icrc.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "qemu/rnic/formats/headers.h"

namespace tern {

namespace {

/* RoCE has no LRH; the CRC runs over eight bytes of ones in its place (A16.3.4.1, A17.3.3). */
constexpr size_t kLrhSize = 8;
constexpr size_t kMaxMasked =
        kLrhSize + sizeof(headers::Ipv6) + sizeof(headers::Udp) + sizeof(headers::Bth);
/* Up to this size, copying is cheaper than a second CRC call. */
constexpr size_t kMaxAppended = 64;

/* A copy of the headers up to the BTH, which contain all variant fields, with those set to ones. */
class MaskedHeaders {
public:
	MaskedHeaders(std::span<const std::byte> packet, bool roce_v2)
	{
		std::memset(bytes_.data(), 0xff, kLrhSize);
		if (roce_v2 && std::to_integer<unsigned>(packet[0]) >> 4 == 4)
			mask_ipv4(copy<headers::Ipv4>(packet));
		else
			mask_ipv6(copy<headers::Ipv6>(packet));
		if (roce_v2)
			set_ones(copy<headers::Udp>(packet), offsetof(headers::Udp, checksum), 2);
		/* FECN, BECN and the reserved bits next to them */
		set_ones(copy<headers::Bth>(packet), offsetof(headers::Bth, qpn), 1);
	}

	/** Appends the bytes that follow, at most kMaxAppended. */
	void append(std::span<const std::byte> few)
	{
		std::ranges::copy(few, bytes_.begin() + static_cast<ptrdiff_t>(size_));
		size_ += few.size();
	}
	std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }
	/** The number of bytes of the packet that were copied. */
	size_t consumed() const { return size_ - kLrhSize; }

private:
	/* Copies the next header and returns its position in bytes_. */
	template <typename Header>
	size_t copy(std::span<const std::byte> packet)
	{
		const size_t begin = size_;
		std::memcpy(&bytes_[begin], packet.data() + consumed(), sizeof(Header));
		size_ += sizeof(Header);
		return begin;
	}
	void set_ones(size_t header, size_t offset, size_t count)
	{
		std::memset(&bytes_[header + offset], 0xff, count);
	}
	void mask_ipv4(size_t header)
	{
		set_ones(header, offsetof(headers::Ipv4, tos), 1);
		set_ones(header, offsetof(headers::Ipv4, ttl), 1);
		set_ones(header, offsetof(headers::Ipv4, checksum), 2);
	}
	/* Sets traffic class, flow label (behind 4 bits of version) and hop limit. */
	void mask_ipv6(size_t header)
	{
		bytes_[header] |= std::byte{0x0f};
		set_ones(header, 1, 3);
		set_ones(header, offsetof(headers::Ipv6, hop_limit), 1);
	}

	std::array<std::byte, kMaxMasked + kMaxAppended> bytes_;
	size_t size_ = kLrhSize;
};

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes)
{
	return crc32_gzip_refl(crc, reinterpret_cast<const unsigned char *>(bytes.data()),
	                       bytes.size());
}

} // namespace

uint32_t icrc(std::span<const std::byte> packet, bool roce_v2)
{
	MaskedHeaders masked(packet, roce_v2);
	assert(packet.size() >= masked.consumed());
	const auto rest = packet.subspan(masked.consumed());
	if (rest.size() > kMaxAppended)
		return crc32(crc32(0, masked.bytes()), rest);
	masked.append(rest);
	return crc32(0, masked.bytes());
}

} // namespace tern
