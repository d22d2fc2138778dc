// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/classify.h"

#include <array>
#include <gtest/gtest.h>
#include <variant>

#include "qemu/rnic/formats/headers.h"
#include "tests/unit/fabric/frames.h"

namespace tern::fabric {
namespace {

using test::Bytes;
using test::roce_frame;

TEST(Classify, PriorityFromDscp)
{
	EXPECT_EQ(priority_of(roce_frame({.traffic_class = 26 << 2})), 3);
	EXPECT_EQ(priority_of(roce_frame({.traffic_class = 48 << 2, .ipv6 = true})), 6);
	EXPECT_EQ(priority_of(roce_frame({})), 0);
}

TEST(Classify, TagComesBeforeDscp)
{
	EXPECT_EQ(priority_of(roce_frame({.traffic_class = 26 << 2, .vlan = 5, .pcp = 4})), 4);
}

TEST(Classify, ShortAndForeignFramesHavePriorityZero)
{
	const Bytes frame = roce_frame({.traffic_class = 0xfc});
	for (size_t size = 0; size < 34; size++)
		EXPECT_EQ(priority_of(std::span(frame).first(size)), 0) << size;
	EXPECT_EQ(priority_of(test::plain_frame(test::mac(1), test::mac(2))), 0);
}

TEST(Classify, HashOfAFlow)
{
	const auto hash = [](const test::FrameSpec &spec) {
		return flow_hash(roce_frame(spec), 0);
	};
	EXPECT_EQ(hash({.payload = 100}), hash({.payload = 1000}));
	EXPECT_EQ(hash({.traffic_class = 2}), hash({.traffic_class = 3}));
	EXPECT_NE(hash({.udp_sport = 0xc000}), hash({.udp_sport = 0xc001}));
	EXPECT_NE(hash({.udp_sport = 0xc000, .ipv6 = true}),
	          hash({.udp_sport = 0xc001, .ipv6 = true}));
	EXPECT_NE(hash({.to = 2}), hash({.to = 3}));
	EXPECT_NE(flow_hash(test::plain_frame(test::mac(1), test::mac(2)), 0),
	          flow_hash(test::plain_frame(test::mac(1), test::mac(3)), 0));
}

/* Only the first fragment of a datagram has the ports. */
TEST(Classify, FragmentsOfADatagramHashAlike)
{
	constexpr size_t kIp = sizeof(headers::Ethernet), kUdp = kIp + sizeof(headers::Ipv4);
	const auto fragment = [](uint16_t fields, uint8_t first_byte) {
		Bytes frame = roce_frame({});
		auto &ip = *reinterpret_cast<headers::Ipv4 *>(frame.data() + kIp);
		ip.fragment = fields;
		frame[kUdp] = std::byte{first_byte};
		return flow_hash(frame, 0);
	};
	const uint64_t first = fragment(headers::kIpv4MoreFragments, 0xc0);
	EXPECT_EQ(fragment(headers::kIpv4MoreFragments | 128, 1), first);
	EXPECT_EQ(fragment(256, 2), first);
	EXPECT_NE(fragment(headers::kIpv4DontFragment, 0xc0),
	          fragment(headers::kIpv4DontFragment, 0xc1));
}

/* Behind the fragment header of IPv6 no ports are looked for. */
TEST(Classify, FragmentsOfAnIpv6DatagramHashAlike)
{
	constexpr uint8_t kFragmentHeader = 44;
	constexpr size_t kIp = sizeof(headers::Ethernet), kNext = kIp + sizeof(headers::Ipv6);
	const auto fragment = [](uint8_t offset, uint8_t first_byte) {
		Bytes frame = roce_frame({.ipv6 = true});
		auto &ip = *reinterpret_cast<headers::Ipv6 *>(frame.data() + kIp);
		ip.next_header = kFragmentHeader;
		const std::array<std::byte, 8> header{
		        std::byte{headers::kProtoUdp}, {}, std::byte{offset}};
		frame.insert(frame.begin() + kNext, header.begin(), header.end());
		frame[kNext + header.size()] = std::byte{first_byte};
		return flow_hash(frame, 0);
	};
	EXPECT_EQ(fragment(0, 0xc0), fragment(4, 1));
}

/* The parser checks the IPv4 checksum and the ICRC. */
TEST(Classify, MarkedPacketsAreValid)
{
	for (const bool ipv6 : {false, true}) {
		for (const uint8_t ecn : {1, 2}) {
			for (unsigned dscp = 0; dscp < 64; dscp++) {
				const auto traffic_class = static_cast<uint8_t>(dscp << 2 | ecn);
				Bytes frame =
				        roce_frame({.traffic_class = traffic_class, .ipv6 = ipv6});
				EXPECT_EQ(mark_ce(frame), Ecn::Marked);
				const auto parsed = parse(frame);
				ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
				EXPECT_EQ(std::get<Packet>(parsed).path.traffic_class,
				          dscp << 2 | 3);
			}
		}
	}
}

TEST(Classify, OnlyCapableFramesAreMarked)
{
	for (const bool ipv6 : {false, true}) {
		Bytes frame = roce_frame({.traffic_class = 4, .ipv6 = ipv6});
		const Bytes before = frame;
		EXPECT_EQ(mark_ce(frame), Ecn::NotCapable);
		EXPECT_EQ(frame, before);
		Bytes marked = roce_frame({.traffic_class = 3, .ipv6 = ipv6});
		EXPECT_EQ(mark_ce(marked), Ecn::WasMarked);
	}
	Bytes plain = test::plain_frame(test::mac(1), test::mac(2));
	EXPECT_EQ(mark_ce(plain), Ecn::NotCapable);
	Bytes cut = roce_frame({.traffic_class = 1});
	EXPECT_EQ(mark_ce(std::span(cut).first(20)), Ecn::NotCapable);
}

TEST(Red, ProbabilityRisesFromKminToKmax)
{
	const Red red{.kmin = 1000, .kmax = 3000, .pmax = 0.1};
	EXPECT_EQ(red.probability(1000), 0);
	EXPECT_DOUBLE_EQ(red.probability(2000), 0.05);
	EXPECT_EQ(red.probability(3000), 1);
	EXPECT_EQ(Red{}.probability(1 << 30), 0);
	const Red step{.kmin = 1000, .kmax = 1000};
	EXPECT_EQ(step.probability(999), 0);
	EXPECT_EQ(step.probability(1000), 1);
}

TEST(Red, MarksThatShare)
{
	const Red red{.kmin = 0, .kmax = 2000, .pmax = 0.5};
	std::mt19937_64 random(1);
	unsigned marked = 0;
	for (unsigned i = 0; i < 100'000; i++)
		marked += red.marks(1000, random);
	EXPECT_NEAR(marked, 25'000, 500);
}

/** An IPv4 or IPv6 frame with that traffic class. */
std::vector<std::byte> ip_frame(bool ipv4, uint8_t traffic_class, uint16_t vlan = kNoVlan)
{
	AddressVector av;
	av.vlan = vlan;
	av.traffic_class = traffic_class;
	av.sgid.bytes = {0xfd};
	av.dgid.bytes = {0xfd, 1};
	if (ipv4) {
		av.sgid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
		av.dgid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
	}
	std::vector<std::byte> frame(kMaxRoceFrame);
	Bth bth;
	bth.opcode = static_cast<uint8_t>(Opcode::RcSendOnly);
	FrameBuilder builder(frame, PathHeader(av), bth, {}, 64);
	frame.resize(builder.finish().size());
	return frame;
}

class Marking : public ::testing::TestWithParam<std::tuple<bool, uint16_t>> {};

TEST_P(Marking, CapablePacketsAlone)
{
	const auto [ipv4, vlan] = GetParam();
	for (const unsigned ecn : {0u, 1u, 2u, 3u}) {
		const auto before = ip_frame(ipv4, static_cast<uint8_t>(0x68 | ecn), vlan);
		auto frame = before;
		const bool capable = ecn == 1 || ecn == 2;
		EXPECT_EQ(can_mark(frame), capable);
		EXPECT_EQ(mark_ce(frame) == Ecn::Marked, capable);
		EXPECT_EQ(is_marked(frame), ecn != 0);
		EXPECT_EQ(frame == before, !capable);
		/* Everything else, the IP checksum and the ICRC too, is right. */
		const auto parsed = parse(frame);
		ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
		EXPECT_EQ(std::get<Packet>(parsed).path.traffic_class, 0x68 | (ecn ? 3 : 0));
	}
}

INSTANTIATE_TEST_SUITE_P(All, Marking,
                         ::testing::Combine(::testing::Bool(), ::testing::Values(kNoVlan, 7)));

TEST(MarkCe, OtherFramesAreNotMarked)
{
	std::vector<std::byte> arp(60);
	arp[12] = std::byte{0x08};
	arp[13] = std::byte{0x06};
	EXPECT_EQ(mark_ce(arp), Ecn::NotCapable);
	auto frame = ip_frame(true, 2);
	for (size_t size = 0; size < 34; size++)
		EXPECT_EQ(mark_ce(std::span(frame).first(size)), Ecn::NotCapable);
}

} // namespace
} // namespace tern::fabric
