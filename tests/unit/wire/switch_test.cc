// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <gtest/gtest.h>
#include <map>

#include "qemu/rnic/formats/pause.h"
#include "qemu/shm/address_page.h"
#include "tests/unit/wire/frames.h"

namespace tern::wire {
namespace {

class SwitchTest : public testing::Test {
protected:
	SwitchTest()
	{
		for (Host &host : hosts)
			ethernet.attach(host);
	}

	Outlet *send(Switch::PortId from, uint8_t to, uint32_t tag)
	{
		return ethernet.forward(from, frame(to, static_cast<uint8_t>(from), tag));
	}
	/* Makes the addresses of all hosts known; forgets what that sent around. */
	void learn_all()
	{
		for (Switch::PortId id = 0; id < hosts.size(); id++)
			send(id, kBroadcast, 0);
		for (Host &host : hosts)
			host.got.clear();
	}

	using Tags = std::vector<uint32_t>;

	Switch ethernet;
	std::array<Host, 4> hosts;
};

TEST_F(SwitchTest, FloodsWhatItDoesNotKnow)
{
	send(0, 3, 1);
	EXPECT_TRUE(hosts[0].got.empty());
	for (int i : {1, 2, 3})
		EXPECT_EQ(hosts[i].tags(), Tags{1});
	EXPECT_EQ(ethernet.stats().flooded, 1u);
}

TEST_F(SwitchTest, LearnsWhereFramesComeFrom)
{
	send(3, kBroadcast, 1);
	send(0, 3, 2);
	EXPECT_EQ(hosts[3].tags(), Tags{2});
	EXPECT_EQ(hosts[1].tags(), Tags{1});
	EXPECT_EQ(hosts[2].tags(), Tags{1});
}

TEST_F(SwitchTest, FollowsAnAddressThatMoves)
{
	learn_all();
	ethernet.forward(1, frame(kBroadcast, 3, 1));
	send(0, 3, 2);
	EXPECT_EQ(hosts[1].tags(), Tags{2});
	EXPECT_EQ(hosts[3].tags(), Tags{1});
}

TEST_F(SwitchTest, NeverSendsBackOrLearnsGroups)
{
	learn_all();
	send(0, 0, 1);
	ethernet.forward(2, frame(0, kBroadcast, 2)); /* a unicast source ending in ff */
	Bytes from_group = frame(kBroadcast, 9, 3);
	from_group[6] = std::byte{1};
	ethernet.forward(2, from_group);
	EXPECT_EQ(hosts[0].tags(), (Tags{2, 3}));
	EXPECT_EQ(hosts[2].tags(), Tags{});
	EXPECT_EQ(ethernet.addresses_of(2).size(), 2u);
}

TEST_F(SwitchTest, DropsWhatHasNoHeader)
{
	for (size_t size = 1; size < kMinFrame; size++)
		ethernet.forward(0, Bytes(size));
	EXPECT_EQ(ethernet.stats().filtered, kMinFrame - 1);
	EXPECT_TRUE(hosts[1].got.empty());
}

TEST_F(SwitchTest, ForgetsWhoLeft)
{
	learn_all();
	ethernet.detach(3);
	send(0, 3, 1);
	EXPECT_EQ(hosts[1].tags(), Tags{1});
	EXPECT_TRUE(hosts[3].got.empty());
	Host newcomer;
	EXPECT_EQ(ethernet.attach(newcomer), 3u);
	send(0, 3, 2);
	EXPECT_EQ(newcomer.tags(), Tags{2});
}

TEST_F(SwitchTest, NamesTheOutletThatIsFull)
{
	learn_all();
	EXPECT_EQ(send(0, 2, 1), nullptr);
	hosts[2].room = false;
	EXPECT_EQ(send(0, 2, 2), &hosts[2]);
	EXPECT_EQ(send(0, 1, 4), nullptr);
}

/* The others get theirs, and the sender goes on. */
TEST_F(SwitchTest, AFrameToManyWaitsForNobody)
{
	learn_all();
	hosts[2].room = false;
	EXPECT_EQ(send(0, kBroadcast, 1), nullptr);
	EXPECT_EQ(send(0, 99, 2), nullptr);
	EXPECT_EQ(hosts[1].tags(), (Tags{1, 2}));
	EXPECT_EQ(hosts[2].tags(), Tags{});
	EXPECT_EQ(hosts[3].tags(), (Tags{1, 2}));
}

/* Otherwise a guest pauses the cards of all others. */
TEST_F(SwitchTest, KeepsWhatIsForTheLinkAlone)
{
	const PauseFrame pause = pause_frame(0, kMaxQuanta);
	ethernet.forward(0, pause);
	Bytes bytes(pause.begin(), pause.end());
	bytes[5] = std::byte{0x0f};
	ethernet.forward(0, bytes);
	EXPECT_EQ(hosts[1].got.size(), 0u);
	EXPECT_EQ(ethernet.stats().filtered, 2u);
	/* Not those of bridges, which find loops by them, nor those of other protocols. */
	bytes[5] = std::byte{0};
	ethernet.forward(0, bytes);
	bytes[5] = std::byte{0x10};
	ethernet.forward(0, bytes);
	EXPECT_EQ(hosts[1].got.size(), 2u);
}

TEST_F(SwitchTest, BoundsItsTable)
{
	Bytes bytes = frame(kBroadcast, 0);
	for (uint32_t i = 0; i < 100000; i++) {
		bytes[8] = static_cast<std::byte>(i >> 16);
		bytes[9] = static_cast<std::byte>(i >> 8);
		bytes[10] = static_cast<std::byte>(i);
		ethernet.forward(0, bytes);
		hosts[1].got.clear();
		hosts[2].got.clear();
		hosts[3].got.clear();
	}
	EXPECT_LE(ethernet.addresses_of(0).size(), 4096u);
}

/* A frame with a source that no host has. */
Bytes invented(uint32_t number)
{
	Bytes bytes = frame(kBroadcast, 0);
	for (size_t i = 0; i < 4; i++)
		bytes[7 + i] = static_cast<std::byte>(number >> (24 - 8 * i));
	bytes[6] = std::byte{2};
	return bytes;
}

TEST_F(SwitchTest, WhoInventsAddressesForgetsItsOwnOldest)
{
	learn_all();
	for (uint32_t i = 0; i < 5000; i++)
		ethernet.forward(0, invented(i));
	EXPECT_EQ(ethernet.addresses_of(0).size(), 256u);
	const auto known = [&](uint32_t number) {
		return ethernet.addresses().contains(shm::address_at(invented(number), 6));
	};
	EXPECT_TRUE(known(4999));
	EXPECT_TRUE(known(4744));
	EXPECT_FALSE(known(4743));
	for (Host &host : hosts)
		host.got.clear();
	send(1, 3, 7);
	EXPECT_EQ(hosts[3].tags(), Tags{7});
	EXPECT_EQ(hosts[2].tags(), Tags{}) << "the address of host 3 is still known";
}

/* What moves is the new host's, and the old one does not take it along. */
TEST_F(SwitchTest, AnAddressThatMovedIsNotForgottenWhereItWas)
{
	ethernet.forward(0, invented(1'000'000));
	ethernet.forward(1, invented(1'000'000));
	for (uint32_t i = 0; i < 300; i++)
		ethernet.forward(0, invented(i));
	EXPECT_EQ(ethernet.addresses_of(0).size(), 256u);
	EXPECT_EQ(ethernet.addresses_of(1).size(), 1u);
}

/* Each move is one more for the port that the address comes to, and one less for the other. */
TEST_F(SwitchTest, AnAddressMayMoveAsOftenAsItLikes)
{
	for (int i = 0; i < 300; i++) {
		ethernet.forward(0, invented(7));
		ethernet.forward(1, invented(7));
	}
	EXPECT_EQ(ethernet.addresses_of(0).size(), 0u);
	EXPECT_EQ(ethernet.addresses_of(1).size(), 1u);
	for (uint32_t i = 0; i < 255; i++)
		ethernet.forward(1, invented(100 + i));
	EXPECT_EQ(ethernet.addresses_of(1).size(), 256u) << "it counts once";
}

TEST_F(SwitchTest, ManyWhoInventAddressesLoseTheirs)
{
	learn_all();
	std::array<Host, 20> more;
	for (Host &host : more) {
		const Switch::PortId id = ethernet.attach(host);
		for (uint32_t i = 0; i < 300; i++)
			ethernet.forward(id, invented(id * 1000 + i));
		for (Host &other : more)
			other.got.clear();
	}
	EXPECT_EQ(ethernet.addresses().size(), 4096u);
	for (Switch::PortId id = 0; id < hosts.size(); id++)
		EXPECT_EQ(ethernet.addresses_of(id).size(), 1u) << id;
}

TEST_F(SwitchTest, LosesAndDuplicatesAboutAsManyAsAsked)
{
	learn_all();
	ethernet.faults().set_percent(FaultSet::kLoss, 10);
	ethernet.faults().set_percent(FaultSet::kDuplicate, 5);
	constexpr uint32_t kFrames = 20000;
	for (uint32_t i = 0; i < kFrames; i++)
		send(0, 1, i);
	std::map<uint32_t, int> copies;
	for (const uint32_t tag : hosts[1].tags())
		copies[tag]++;
	const auto lost = kFrames - static_cast<uint32_t>(copies.size());
	EXPECT_NEAR(lost, 2000, 300);
	EXPECT_EQ(ethernet.faults().counts.lost, lost);
	EXPECT_NEAR(static_cast<double>(ethernet.faults().counts.duplicated), 900, 200);
	EXPECT_EQ(hosts[1].got.size(), kFrames - lost + ethernet.faults().counts.duplicated);
}

TEST_F(SwitchTest, DecidesForEachDestination)
{
	ethernet.faults().set_percent(FaultSet::kLoss, 50);
	for (uint32_t i = 0; i < 1000; i++)
		send(0, kBroadcast, i);
	EXPECT_NE(hosts[1].tags(), hosts[2].tags());
	EXPECT_NE(hosts[2].tags(), hosts[3].tags());
}

TEST_F(SwitchTest, ReordersWithoutLosing)
{
	learn_all();
	ethernet.faults().set_percent(FaultSet::kReorder, 10);
	Tags sent;
	for (uint32_t i = 0; i < 5000; i++) {
		send(0, 1, i);
		sent.push_back(i);
	}
	ethernet.release_held(SteadyTime::max());
	EXPECT_FALSE(ethernet.holds());
	Tags got = hosts[1].tags();
	EXPECT_NE(got, sent);
	EXPECT_GT(ethernet.faults().counts.reordered, 300u);
	for (uint32_t i = 0; i < got.size(); i++)
		EXPECT_NEAR(got[i], i, 8) << "at " << i;
	std::ranges::sort(got);
	EXPECT_EQ(got, sent);
}

TEST_F(SwitchTest, CorruptsBehindTheEthernetHeader)
{
	learn_all();
	ethernet.faults().set_percent(FaultSet::kCorrupt, 100);
	for (uint32_t i = 0; i < 1000; i++) {
		const Bytes sent = frame(1, 0, i);
		ethernet.forward(0, sent);
		const Bytes &got = hosts[1].got.back();
		ASSERT_EQ(got.size(), sent.size());
		EXPECT_NE(got, sent);
		EXPECT_TRUE(std::equal(got.begin(), got.begin() + kMinFrame, sent.begin()));
	}
}

TEST_F(SwitchTest, StopsFaultsWhenAsked)
{
	learn_all();
	ethernet.faults().set_percent(FaultSet::kReorder, 100);
	send(0, 1, 1);
	EXPECT_TRUE(ethernet.holds());
	ethernet.faults().set_percent(FaultSet::kReorder, 0);
	for (uint32_t i = 2; i < 10; i++)
		send(0, 1, i);
	EXPECT_FALSE(ethernet.holds());
	EXPECT_EQ(hosts[1].got.size(), 9u);
}

/* ---- lanes ------------------------------------------------------------------ */

constexpr uint32_t kGsi = 1;

/* Ports 0 and 1 are the lanes of a card, 2 is of none, 3 and 4 are lanes 0 and 2 of a card, 5 is a
 * card's only one. The address of each card is that of its first port. */
class LanesTest : public testing::Test {
protected:
	LanesTest()
	{
		for (Host &host : hosts)
			ethernet.attach(host);
		EXPECT_EQ(ethernet.place(0, 77, 0), "");
		EXPECT_EQ(ethernet.place(4, 88, 2), "");
		EXPECT_EQ(ethernet.place(1, 77, 1), "");
		EXPECT_EQ(ethernet.place(2, 0, 0), "");
		EXPECT_EQ(ethernet.place(3, 88, 0), "");
		EXPECT_EQ(ethernet.place(5, 99, 0), "");
	}

	static uint8_t address(Switch::PortId port)
	{
		return std::array<uint8_t, 6>{0, 0, 2, 3, 3, 5}[port];
	}
	void learn_all()
	{
		for (const Switch::PortId id : {0, 2, 3, 5})
			ethernet.forward(id, frame(kBroadcast, address(id)));
		for (Host &host : hosts)
			host.got.clear();
	}
	using Ports = std::vector<Switch::PortId>;
	/* Who gets it, one entry for each time. */
	Ports get(Switch::PortId from, const Bytes &bytes)
	{
		ethernet.forward(from, bytes);
		Ports ports;
		for (Switch::PortId id = 0; id < hosts.size(); id++) {
			ports.insert(ports.end(), hosts[id].got.size(), id);
			hosts[id].got.clear();
		}
		return ports;
	}
	Ports get_roce(Switch::PortId from, uint8_t to, uint32_t qpn)
	{
		return get(from, roce(to, address(from), qpn));
	}
	Ports get_other(Switch::PortId from, uint8_t to)
	{
		return get(from, frame(to, address(from)));
	}

	Switch ethernet;
	std::array<Host, 6> hosts;
};

TEST_F(LanesTest, RefusesPlacesThatCannotBe)
{
	Host host;
	const auto id = ethernet.attach(host);
	EXPECT_EQ(ethernet.place(id, 77, 16), "a card has no lane 16");
	EXPECT_EQ(ethernet.place(id, 0, ~0u), "a card has no lane 4294967295");
	EXPECT_EQ(ethernet.place(id, 0, 1), "only a card has several lanes");
	EXPECT_EQ(ethernet.place(id, 77, 1), "lane 1 of that card is on the wire already");
	EXPECT_EQ(ethernet.place(id, 99, 0), "lane 0 of that card is on the wire already");
	EXPECT_EQ(ethernet.place_of(id).primary, id);
	EXPECT_EQ(ethernet.place_of(id).lanes, 1u);
	EXPECT_EQ(ethernet.place(id, 77, 15), "");
	EXPECT_EQ(ethernet.place_of(1).lanes, 3u);
	ethernet.detach(id);
	EXPECT_EQ(ethernet.attach(host), id);
	EXPECT_EQ(ethernet.place_of(id).primary, id) << "the card has gone with its port";
	EXPECT_EQ(ethernet.place(id, 0, 0), "");
	EXPECT_EQ(ethernet.place_of(1).lanes, 2u);
}

TEST_F(LanesTest, TheirAddressesAreThePrimarys)
{
	get_other(1, kBroadcast);
	EXPECT_EQ(ethernet.addresses_of(0).size(), 1u);
	EXPECT_EQ(ethernet.addresses_of(1).size(), 0u);
	const uint64_t changes = ethernet.address_changes();
	get_other(0, kBroadcast);
	get_other(1, kBroadcast);
	EXPECT_EQ(ethernet.address_changes(), changes) << "it stays where it is";
}

/* When its primary changes, a card keeps its addresses, and their limit. */
TEST_F(LanesTest, ANewPrimaryForgetsTheOldestOfTheCard)
{
	Host first, second;
	const Switch::PortId lane1 = ethernet.attach(first), lane0 = ethernet.attach(second);
	ASSERT_EQ(ethernet.place(lane1, 111, 1), "");
	for (uint32_t i = 0; i < 200; i++)
		ethernet.forward(lane1, invented(i));
	for (uint32_t i = 200; i < 300; i++)
		ethernet.forward(lane0, invented(i));
	ASSERT_EQ(ethernet.place(lane0, 111, 0), "");
	EXPECT_EQ(ethernet.addresses_of(lane1).size(), 0u);
	EXPECT_EQ(ethernet.addresses_of(lane0).size(), 256u);
	ethernet.detach(lane1);
	for (uint32_t i = 300; i < 500; i++)
		ethernet.forward(lane0, invented(i));
	EXPECT_EQ(ethernet.addresses_of(lane0).size(), 256u);
	ethernet.detach(lane0);
	EXPECT_EQ(ethernet.addresses().size(), 0u);
}

TEST_F(LanesTest, ThePacketsOfAQpGoToItsEngine)
{
	learn_all();
	for (const Switch::PortId from : {2, 5, 3, 4}) {
		EXPECT_EQ(get_roce(from, 0, qp_of(0)), Ports{0});
		EXPECT_EQ(get_roce(from, 0, qp_of(1)), Ports{1});
		EXPECT_EQ(get_roce(from, 0, kGsi), Ports{0});
		EXPECT_EQ(get_roce(from, 0, qp_of(2)), Ports{0}) << "there is none";
		EXPECT_EQ(get_roce(from, 0, qp_of(15)), Ports{0});
		EXPECT_EQ(get_other(from, 0), Ports{0});
	}
	EXPECT_EQ(get_roce(1, 3, qp_of(1)), Ports{3});
	EXPECT_EQ(get_roce(1, 3, qp_of(2)), Ports{4});
	EXPECT_EQ(get_roce(0, 2, qp_of(1)), Ports{2});
	EXPECT_EQ(get_roce(0, 5, qp_of(1)), Ports{5});
	EXPECT_EQ(ethernet.stats().filtered, 0u);
}

TEST_F(LanesTest, OneSendsToAnotherOfItsCard)
{
	learn_all();
	EXPECT_EQ(get_roce(0, 0, qp_of(1)), Ports{1});
	EXPECT_EQ(get_roce(1, 0, qp_of(0)), Ports{0});
	EXPECT_EQ(get_roce(1, 0, qp_of(7)), Ports{0});
	EXPECT_EQ(get_other(1, 0), Ports{0});
	EXPECT_EQ(ethernet.stats().filtered, 0u);
	EXPECT_EQ(get_roce(0, 0, qp_of(0)), Ports{});
	EXPECT_EQ(get_roce(1, 0, qp_of(1)), Ports{});
	EXPECT_EQ(get_roce(0, 0, qp_of(7)), Ports{});
	EXPECT_EQ(get_other(0, 0), Ports{});
	EXPECT_EQ(ethernet.stats().filtered, 4u);
}

TEST_F(LanesTest, RoceMulticastReachesEveryEngine)
{
	EXPECT_EQ(get_roce(0, kBroadcast, 0xffffff), (Ports{1, 2, 3, 4, 5}));
	EXPECT_EQ(get_roce(1, kBroadcast, 0xffffff), (Ports{0, 2, 3, 4, 5}));
	EXPECT_EQ(get_roce(2, kBroadcast, qp_of(1)), (Ports{0, 1, 3, 4, 5}));
}

TEST_F(LanesTest, OtherGroupsReachPrimariesOfOtherCards)
{
	EXPECT_EQ(get_other(0, kBroadcast), (Ports{2, 3, 5}));
	EXPECT_EQ(get_other(1, kBroadcast), (Ports{2, 3, 5}));
	EXPECT_EQ(get_other(2, kBroadcast), (Ports{0, 3, 5}));
	EXPECT_EQ(get_other(4, kBroadcast), (Ports{0, 2, 5}));
}

/* Of the sender's card, too, which may have that address besides the one that it sends from. */
TEST_F(LanesTest, WhatIsUnknownReachesOneOfEachCard)
{
	EXPECT_EQ(get_roce(2, 9, qp_of(1)), (Ports{1, 3, 5}));
	EXPECT_EQ(get_roce(2, 9, qp_of(2)), (Ports{0, 4, 5}));
	EXPECT_EQ(get_roce(1, 9, qp_of(0)), (Ports{0, 2, 3, 5}));
	EXPECT_EQ(get_roce(0, 9, qp_of(2)), (Ports{2, 4, 5}));
	EXPECT_EQ(get_other(5, 9), (Ports{0, 2, 3}));
	EXPECT_EQ(get_other(1, 9), (Ports{2, 3, 5}));
}

TEST_F(LanesTest, TheFullOneIsTheLane)
{
	learn_all();
	hosts[1].room = false;
	EXPECT_EQ(ethernet.forward(2, roce(0, 2, qp_of(1))), &hosts[1]);
	EXPECT_EQ(ethernet.forward(2, roce(0, 2, qp_of(0))), nullptr);
}

TEST_F(LanesTest, OneLeaves)
{
	learn_all();
	const uint64_t changes = ethernet.address_changes();
	ethernet.detach(1);
	EXPECT_NE(ethernet.address_changes(), changes);
	EXPECT_EQ(get_roce(2, 0, qp_of(1)), Ports{0});
	EXPECT_EQ(get_roce(0, 0, qp_of(1)), Ports{});
	EXPECT_EQ(get_roce(2, kBroadcast, 0xffffff), (Ports{0, 3, 4, 5}));
	EXPECT_EQ(ethernet.attach(hosts[1]), 1u);
	EXPECT_EQ(get_roce(2, 0, qp_of(1)), Ports{0}) << "not without a place";
	EXPECT_EQ(ethernet.place(1, 77, 1), "");
	EXPECT_EQ(get_roce(2, 0, qp_of(1)), Ports{1});
}

TEST_F(LanesTest, ThePrimaryLeaves)
{
	learn_all();
	ethernet.detach(3);
	/* What is for it is unknown; the card is there, and that lane takes all of it. */
	EXPECT_EQ(get_roce(2, 3, qp_of(0)), (Ports{0, 4, 5}));
	EXPECT_EQ(get_roce(2, 3, qp_of(1)), (Ports{1, 4, 5}));
	EXPECT_EQ(get_other(0, kBroadcast), (Ports{2, 4, 5}));
	/* The one that is left has the addresses, until the other is back. */
	get_other(4, kBroadcast);
	EXPECT_EQ(get_roce(2, 3, qp_of(0)), Ports{4});
	EXPECT_EQ(ethernet.attach(hosts[3]), 3u);
	EXPECT_EQ(ethernet.place(3, 88, 0), "");
	EXPECT_EQ(ethernet.addresses_of(3).size(), 1u);
	EXPECT_EQ(ethernet.addresses_of(4).size(), 0u);
	EXPECT_EQ(get_roce(2, 3, qp_of(0)), Ports{3});
	EXPECT_EQ(get_roce(2, 3, qp_of(2)), Ports{4});
}

} // namespace
} // namespace tern::wire
