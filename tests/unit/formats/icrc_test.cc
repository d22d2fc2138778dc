// SPDX-License-Identifier: GPL-2.0-or-later
/* Against frames whose ICRC others computed: see make_icrc_vectors.py. */
#include "qemu/rnic/formats/icrc.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "qemu/rnic/formats/packet.h"
#include "tern/endian.hpp"

namespace tern {
namespace {

struct Vector {
	const char *name;
	std::string_view hex;
};

const Vector kVectors[] = {
#include "icrc_vectors.inc"
};

std::vector<std::byte> decode(std::string_view hex)
{
	std::vector<std::byte> bytes;
	for (size_t i = 0; i < hex.size(); i += 2)
		bytes.push_back(static_cast<std::byte>(
		        std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
	return bytes;
}

class IcrcVectors : public testing::TestWithParam<Vector> {};

TEST_P(IcrcVectors, Computed)
{
	const auto frame = decode(GetParam().hex);
	const bool vlan = frame[12] == std::byte{0x81};
	const bool roce_v1 = frame[vlan ? 16 : 12] == std::byte{0x89};
	const auto packet = std::span(frame).subspan(vlan ? 18 : 14);

	Le<uint32_t> expected;
	std::memcpy(&expected, packet.last(4).data(), sizeof(expected));
	EXPECT_EQ(icrc(packet.first(packet.size() - 4), !roce_v1), expected.get());
}

TEST_P(IcrcVectors, Parsed)
{
	const auto frame = decode(GetParam().hex);
	ASSERT_TRUE(is_roce(frame));
	EXPECT_TRUE(std::holds_alternative<Packet>(parse(frame)));
}

INSTANTIATE_TEST_SUITE_P(All, IcrcVectors, testing::ValuesIn(kVectors),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace tern
