// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/formats/inet_checksum.h"

#include <cstring>

#include "tern/endian.hpp"

namespace tern {

namespace {

uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return static_cast<uint16_t>(sum);
}

} // namespace

/* The sum is independent of byte order, so words are added in host order and only the result is
 * swapped (RFC 1071, 2 B). */
void InetSum::add(std::span<const std::byte> bytes)
{
	uint64_t sum = 0;
	for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(sizeof(uint64_t))) {
		uint64_t words;
		std::memcpy(&words, bytes.data(), sizeof(words));
		sum += (words & 0xffffffff) + (words >> 32);
	}
	uint64_t rest = 0;
	if (!bytes.empty())
		std::memcpy(&rest, bytes.data(), bytes.size());
	sum += (rest & 0xffffffff) + (rest >> 32);
	sum_ += byteswap(fold(sum));
}

uint16_t InetSum::folded() const
{
	return fold(sum_);
}

} // namespace tern
