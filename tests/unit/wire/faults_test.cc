// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "qemu/rnic/formats/packet.h"
#include "qemu/wire/faults.h"

namespace tern::wire {
namespace {

std::vector<unsigned> fates(uint64_t seed)
{
	Faults faults;
	faults.set_percent(Faults::kLoss, 10);
	faults.set_percent(Faults::kReorder, 10);
	faults.seed(seed);
	std::vector<unsigned> fates;
	for (int i = 0; i < 1000; i++) {
		const Faults::Decision decision = faults.decide();
		fates.push_back(decision.lost ? 100u : decision.overtaken);
	}
	return fates;
}

TEST(Faults, AreTheSameFromTheSameSeed)
{
	EXPECT_EQ(fates(7), fates(7));
	EXPECT_NE(fates(7), fates(8));
}

TEST(Faults, NeverAndAlways)
{
	Faults faults;
	EXPECT_FALSE(faults.any());
	faults.set_percent(Faults::kLoss, 100);
	EXPECT_TRUE(faults.any());
	for (int i = 0; i < 1000; i++) {
		const Faults::Decision decision = faults.decide();
		EXPECT_TRUE(decision.lost);
		EXPECT_FALSE(decision.duplicated || decision.corrupted || decision.overtaken);
	}
	faults.set_percent(Faults::kLoss, 0);
	EXPECT_FALSE(faults.any());
	EXPECT_FALSE(faults.decide().lost);
}

TEST(Faults, OneRateDoesNotChangeTheOthers)
{
	Faults one, two;
	for (Faults *faults : {&one, &two})
		faults->set_percent(Faults::kLoss, 20);
	two.set_percent(Faults::kDuplicate, 50);
	for (int i = 0; i < 1000; i++)
		EXPECT_EQ(one.decide().lost, two.decide().lost);
}

/* ---- congestion ---- */

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
		EXPECT_EQ(mark(frame), capable);
		EXPECT_EQ(frame == before, !capable);
		/* Everything else, the IP checksum and the ICRC too, is right. */
		const auto parsed = parse(frame);
		ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
		EXPECT_EQ(std::get<Packet>(parsed).path.traffic_class, 0x68 | (ecn ? 3 : 0));
	}
}

INSTANTIATE_TEST_SUITE_P(All, Marking,
                         ::testing::Combine(::testing::Bool(), ::testing::Values(kNoVlan, 7)));

TEST(Faults, OtherFramesAreNotMarked)
{
	std::vector<std::byte> arp(60);
	arp[12] = std::byte{0x08};
	arp[13] = std::byte{0x06};
	EXPECT_FALSE(mark(arp));
	auto frame = ip_frame(true, 2);
	for (size_t size = 0; size < 34; size++)
		EXPECT_FALSE(mark(std::span(frame).first(size)));
}

} // namespace
} // namespace tern::wire
