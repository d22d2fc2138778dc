// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/toeplitz.h"

#include <algorithm>

#include "qemu/rnic/formats/headers.h"

namespace tern {

using namespace hw;

namespace {

constexpr size_t kAddressIpv4 = sizeof(headers::Ipv4::source);
constexpr size_t kAddressIpv6 = sizeof(Gid);
constexpr size_t kMaxInput = 2 * kAddressIpv6 + 2 * sizeof(__be16);
static_assert(kMaxInput + sizeof(uint32_t) <= TERN_HASH_KEY_SIZE);

bool bit(std::span<const uint8_t> bytes, size_t n)
{
	return bytes[n / 8] >> (7 - n % 8) & 1;
}

/** The input of the hash, appended field by field. */
class Input {
public:
	void add(std::span<const std::byte> piece)
	{
		std::ranges::copy(piece, bytes_.begin() + static_cast<ptrdiff_t>(size_));
		size_ += piece.size();
	}
	std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }

private:
	std::array<std::byte, kMaxInput> bytes_;
	size_t size_ = 0;
};

void add_addresses(Input &input, const FrameFields &fields, uint32_t which)
{
	if (!fields.ip_version)
		return;
	const bool v4 = fields.ip_version == 4;
	const size_t size = v4 ? kAddressIpv4 : kAddressIpv6;
	if (which & (v4 ? TERN_HASH_SRC_IPV4 : TERN_HASH_SRC_IPV6))
		input.add(std::as_bytes(std::span(fields.key.src_ip)).first(size));
	if (which & (v4 ? TERN_HASH_DST_IPV4 : TERN_HASH_DST_IPV6))
		input.add(std::as_bytes(std::span(fields.key.dst_ip)).first(size));
}

void add_ports(Input &input, const FrameFields &fields, uint32_t which)
{
	/* Only the first fragment of a datagram has ports, and all of them must have the same hash.
	 * So the hash of a fragment has no ports. */
	if (!fields.has_ports || fields.fragment)
		return;
	const bool udp = fields.key.ip_proto == headers::kProtoUdp;
	if (which & (udp ? TERN_HASH_SRC_PORT_UDP : TERN_HASH_SRC_PORT_TCP))
		input.add(std::as_bytes(std::span(&fields.key.src_port, 1)));
	if (which & (udp ? TERN_HASH_DST_PORT_UDP : TERN_HASH_DST_PORT_TCP))
		input.add(std::as_bytes(std::span(&fields.key.dst_port, 1)));
}

} // namespace

/* Each bit set in the input XORs the 32 key bits from its position on. */
uint32_t toeplitz(const HashKey &key, std::span<const std::byte> input)
{
	uint32_t window = 0;
	for (size_t n = 0; n < 32; n++)
		window = window << 1 | bit(key, n);
	uint32_t hash = 0;
	for (size_t n = 0; n < input.size() * 8; n++) {
		if (std::to_integer<uint8_t>(input[n / 8]) >> (7 - n % 8) & 1)
			hash ^= window;
		window = window << 1 | bit(key, n + 32);
	}
	return hash;
}

uint32_t hash_of(const FrameFields &fields, uint32_t which, const HashKey &key)
{
	Input input;
	add_addresses(input, fields, which);
	add_ports(input, fields, which);
	return toeplitz(key, input.bytes());
}

} // namespace tern
