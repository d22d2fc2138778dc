// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <gtest/gtest.h>
#include <map>

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
	EXPECT_EQ(send(0, kBroadcast, 3), &hosts[2]);
	EXPECT_EQ(send(0, 1, 4), nullptr);
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

TEST_F(SwitchTest, LosesAndDuplicatesAboutAsManyAsAsked)
{
	learn_all();
	ethernet.faults().set_percent(Faults::kLoss, 10);
	ethernet.faults().set_percent(Faults::kDuplicate, 5);
	constexpr uint32_t kFrames = 20000;
	for (uint32_t i = 0; i < kFrames; i++)
		send(0, 1, i);
	std::map<uint32_t, int> copies;
	for (const uint32_t tag : hosts[1].tags())
		copies[tag]++;
	const auto lost = kFrames - static_cast<uint32_t>(copies.size());
	EXPECT_NEAR(lost, 2000, 300);
	EXPECT_EQ(ethernet.stats().lost, lost);
	EXPECT_NEAR(static_cast<double>(ethernet.stats().duplicated), 900, 200);
	EXPECT_EQ(hosts[1].got.size(), kFrames - lost + ethernet.stats().duplicated);
}

TEST_F(SwitchTest, DecidesForEachDestination)
{
	ethernet.faults().set_percent(Faults::kLoss, 50);
	for (uint32_t i = 0; i < 1000; i++)
		send(0, kBroadcast, i);
	EXPECT_NE(hosts[1].tags(), hosts[2].tags());
	EXPECT_NE(hosts[2].tags(), hosts[3].tags());
}

TEST_F(SwitchTest, ReordersWithoutLosing)
{
	learn_all();
	ethernet.faults().set_percent(Faults::kReorder, 10);
	Tags sent;
	for (uint32_t i = 0; i < 5000; i++) {
		send(0, 1, i);
		sent.push_back(i);
	}
	ethernet.release_held();
	EXPECT_FALSE(ethernet.holds());
	Tags got = hosts[1].tags();
	EXPECT_NE(got, sent);
	EXPECT_GT(ethernet.stats().reordered, 300u);
	for (uint32_t i = 0; i < got.size(); i++)
		EXPECT_NEAR(got[i], i, 8) << "at " << i;
	std::ranges::sort(got);
	EXPECT_EQ(got, sent);
}

TEST_F(SwitchTest, CorruptsBehindTheEthernetHeader)
{
	learn_all();
	ethernet.faults().set_percent(Faults::kCorrupt, 100);
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
	ethernet.faults().set_percent(Faults::kReorder, 100);
	send(0, 1, 1);
	EXPECT_TRUE(ethernet.holds());
	ethernet.faults().set_percent(Faults::kReorder, 0);
	for (uint32_t i = 2; i < 10; i++)
		send(0, 1, i);
	EXPECT_FALSE(ethernet.holds());
	EXPECT_EQ(hosts[1].got.size(), 9u);
}

} // namespace
} // namespace tern::wire
