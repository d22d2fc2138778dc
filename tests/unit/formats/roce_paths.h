/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections and packets that the tests of the wire formats share. */
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "qemu/rnic/formats/packet.h"

namespace tern::test {

inline constexpr Mac kSmac{2, 0, 0, 0, 0, 0xa};
inline constexpr Mac kDmac{2, 0, 0, 0, 0, 0xb};

inline constexpr Gid ipv4_gid(uint8_t last)
{
	return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 7, 0, last}};
}
inline constexpr Gid ipv6_gid(uint8_t last)
{
	return {{0xfd, 0, 0x7e, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
}

struct PathCase {
	const char *name;
	AddressVector av;
	size_t network_offset;
	size_t transport_offset;
};

inline PathCase path_case(const char *name, bool roce_v2, Gid (*gid)(uint8_t), uint16_t vlan)
{
	PathCase result{};
	result.name = name;
	result.av = {.roce_v2 = roce_v2,
	             .smac = kSmac,
	             .dmac = kDmac,
	             .vlan = vlan,
	             .sgid = gid(1),
	             .dgid = gid(2),
	             .traffic_class = 0x6a,
	             .hop_limit = 63,
	             .sl = 5,
	             .flow_label = 0xabcde,
	             .udp_sport = 0xc123};
	result.network_offset = vlan == kNoVlan ? 14 : 18;
	const size_t ip = roce_v2 && gid(1).is_ipv4() ? 20 : 40;
	result.transport_offset = result.network_offset + ip + (roce_v2 ? 8 : 0);
	return result;
}

inline std::vector<PathCase> all_paths()
{
	return {
	        path_case("Ipv4", true, ipv4_gid, kNoVlan),
	        path_case("Ipv4Vlan", true, ipv4_gid, 42),
	        path_case("Ipv6", true, ipv6_gid, kNoVlan),
	        path_case("Ipv6Vlan", true, ipv6_gid, 0xffe),
	        path_case("V1", false, ipv6_gid, kNoVlan),
	        path_case("V1Vlan", false, ipv6_gid, 1),
	        path_case("V1Ipv4Gid", false, ipv4_gid, kNoVlan),
	};
}

inline std::string path_name(const ::testing::TestParamInfo<PathCase> &info)
{
	return info.param.name;
}

inline std::ostream &operator<<(std::ostream &out, const PathCase &path)
{
	return out << path.name;
}

/** Those of IBA table 38 that the card speaks, that of annex A17, and the card's own. */
inline std::vector<uint8_t> spoken_opcodes()
{
	std::vector<uint8_t> opcodes;
	for (const int service : {0x00, 0xa0}) { /* RC, XRC */
		for (int operation = 0; operation <= 0x1d; operation++)
			if (operation <= 0x17 ? operation != 0x15 : operation >= 0x1c)
				opcodes.push_back(static_cast<uint8_t>(service | operation));
	}
	for (uint8_t opcode = 0x20; opcode <= 0x2b; opcode++)
		opcodes.push_back(opcode);           /* UC */
	opcodes.insert(opcodes.end(), {0x64, 0x65}); /* UD */
	opcodes.push_back(0x81);                     /* CNP */
	opcodes.insert(opcodes.end(), {0xd3, 0xd4}); /* masked atomics */
	return opcodes;
}

inline Bth some_bth(uint8_t opcode)
{
	return {.opcode = opcode,
	        .solicited = true,
	        .ack_request = true,
	        .fecn = true,
	        .becn = true,
	        .pkey = 0x8001,
	        .dest_qpn = 0xabcdef,
	        .psn = Psn(0xfedcba)};
}

inline ExtHeaders some_ext()
{
	return {.deth = {0x8badf00d, 0x654321},
	        .feth = {0xa, 2},
	        .reth = {0x0011223344556677, 0x89abcdef, 0x80000000},
	        .aeth = {0x6f, 0xfffffe},
	        .atomic = {0x8877665544332211, 0x76543210, 0x1122334455667788, 0x99aabbccddeeff00},
	        .masks = {0x0f1e2d3c4b5a6978, 0x8796a5b4c3d2e1f0},
	        .atomic_ack = 0xfedcba9876543210,
	        .imm = 0xdeadbeef,
	        .srqn = 0xc0ffee,
	        .inv_rkey = 0x0badcafe};
}

inline std::byte payload_byte(size_t i)
{
	return static_cast<std::byte>(i * 7 + 3);
}

/** A whole frame of @opcode with a payload of @size bytes. */
inline std::vector<std::byte> make_frame(const AddressVector &av, uint8_t opcode, size_t size)
{
	/* not zero, so that a byte which the builder forgets is seen */
	std::vector<std::byte> out(kMaxRoceFrame, std::byte{0xa5});
	FrameBuilder builder(out, PathHeader(av), some_bth(opcode), some_ext(), size);
	const auto payload = builder.payload();
	for (size_t i = 0; i < payload.size(); i++)
		payload[i] = payload_byte(i);
	const auto frame = builder.finish();
	return {frame.begin(), frame.end()};
}
inline std::vector<std::byte> make_frame(const AddressVector &av, Opcode opcode, size_t size)
{
	return make_frame(av, static_cast<uint8_t>(opcode), size);
}

} // namespace tern::test
