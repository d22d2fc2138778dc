// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/toeplitz.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kAll = 0xff;

/* The key and the results with which Microsoft's RSS verification suite checks NICs. */
constexpr HashKey kKey{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                       0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                       0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                       0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

FrameFields ipv4(uint8_t proto)
{
	FrameFields fields;
	fields.ip_version = 4;
	fields.has_ports = true;
	fields.key.ip_proto = proto;
	const uint8_t source[] = {66, 9, 149, 187};
	const uint8_t destination[] = {161, 142, 100, 80};
	std::ranges::copy(source, fields.key.src_ip);
	std::ranges::copy(destination, fields.key.dst_ip);
	fields.key.src_port = uint16_t{2794};
	fields.key.dst_port = uint16_t{1766};
	return fields;
}

FrameFields ipv6()
{
	FrameFields fields = ipv4(6);
	fields.ip_version = 6;
	const uint8_t source[16] = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0, 0x1f, 0xff,
	                            0,    0,    0,    0,    0,    0, 0,    7};
	const uint8_t destination[16] = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0, 0, 3,
	                                 0,    0,    0,    0,    0,    0, 0, 1};
	std::ranges::copy(source, fields.key.src_ip);
	std::ranges::copy(destination, fields.key.dst_ip);
	return fields;
}

TEST(Toeplitz, KnownHashes)
{
	const uint32_t addresses =
	        TERN_HASH_SRC_IPV4 | TERN_HASH_DST_IPV4 | TERN_HASH_SRC_IPV6 | TERN_HASH_DST_IPV6;
	EXPECT_EQ(hash_of(ipv4(6), addresses, kKey), 0x323e8fc2u);
	EXPECT_EQ(hash_of(ipv4(6), kAll, kKey), 0x51ccc178u);
	EXPECT_EQ(hash_of(ipv4(17), kAll, kKey), 0x51ccc178u);
	EXPECT_EQ(hash_of(ipv6(), addresses, kKey), 0x2cc18cd5u);
	EXPECT_EQ(hash_of(ipv6(), kAll, kKey), 0x40207d3du);
}

/* Ports of TCP are not asked for by those of UDP, nor addresses of IPv6 by those of IPv4. */
TEST(Toeplitz, FieldsOfOtherProtocols)
{
	const uint32_t tcp = TERN_HASH_SRC_PORT_TCP | TERN_HASH_DST_PORT_TCP;
	const uint32_t v6 = TERN_HASH_SRC_IPV6 | TERN_HASH_DST_IPV6;
	EXPECT_EQ(hash_of(ipv4(17), tcp | v6, kKey), 0u);
	EXPECT_NE(hash_of(ipv4(6), tcp | v6, kKey), 0u);
	EXPECT_EQ(hash_of(ipv4(6), kAll & ~tcp, kKey), hash_of(ipv4(6), 3, kKey));
}

/* Each field counts by itself. */
TEST(Toeplitz, EachField)
{
	for (const uint32_t field : {TERN_HASH_SRC_IPV4, TERN_HASH_DST_IPV4, TERN_HASH_SRC_PORT_UDP,
	                             TERN_HASH_DST_PORT_UDP}) {
		auto other = ipv4(17);
		other.key.src_ip[3] ^= field == TERN_HASH_SRC_IPV4;
		other.key.dst_ip[3] ^= field == TERN_HASH_DST_IPV4;
		if (field == TERN_HASH_SRC_PORT_UDP)
			other.key.src_port = uint16_t{1};
		if (field == TERN_HASH_DST_PORT_UDP)
			other.key.dst_port = uint16_t{1};
		EXPECT_NE(hash_of(ipv4(17), field, kKey), hash_of(other, field, kKey)) << field;
		EXPECT_EQ(hash_of(ipv4(17), kAll & ~field, kKey),
		          hash_of(other, kAll & ~field, kKey))
		        << field;
	}
}

TEST(Toeplitz, NoIp)
{
	FrameFields fields;
	EXPECT_EQ(hash_of(fields, kAll, kKey), 0u);
	fields = ipv4(6);
	fields.has_ports = false; /* a later fragment */
	EXPECT_EQ(hash_of(fields, kAll, kKey), 0x323e8fc2u);
}

} // namespace
} // namespace tern::test
