// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules and what they do to the packets that pass the switch. */
#include <gtest/gtest.h>
#include <numeric>

#include "tests/unit/wire/packets.h"

namespace tern::wire {
namespace {

using namespace std::chrono_literals;

class RulesOnSwitchTest : public testing::Test {
protected:
	RulesOnSwitchTest()
	{
		for (Switch::PortId id = 0; id < hosts.size(); id++) {
			ethernet.attach(hosts[id]);
			ethernet.forward(id, frame(kBroadcast, static_cast<uint8_t>(id)));
		}
		for (Host &host : hosts)
			host.got.clear();
	}

	void set(const char *rules) { ASSERT_EQ(ethernet.faults().add_rules(rules), ""); }
	/* Sends packets with PSNs from @first to @last from host 0 to host 1. */
	void send(uint32_t first, uint32_t last)
	{
		for (uint32_t psn = first; psn <= last; psn++)
			ethernet.forward(0, packet({.psn = psn}), now);
	}
	/* The PSNs that host 1 got. */
	std::vector<uint32_t> psns() const
	{
		std::vector<uint32_t> found;
		for (const Bytes &bytes : hosts[1].got)
			found.push_back(faults::read_roce(bytes)->psn.value());
		return found;
	}
	std::vector<std::string> comments() const
	{
		std::vector<std::string> found;
		for (const FaultEvent &event : ethernet.fault_events())
			found.push_back(to_string(event));
		return found;
	}
	using Psns = std::vector<uint32_t>;
	using Comments = std::vector<std::string>;

	Switch ethernet;
	std::array<Host, 3> hosts;
	SteadyTime now{1h};
};

TEST_F(RulesOnSwitchTest, Drop)
{
	set("drop opcode=WRITE psn=+2 once");
	send(5, 6);
	EXPECT_EQ(comments(), Comments{});
	send(7, 7);
	EXPECT_EQ(comments(), Comments{"fault: drop, rule 1, to port 1"});
	send(8, 8);
	send(7, 8); /* again */
	EXPECT_EQ(psns(), (Psns{5, 6, 8, 7, 8}));
	EXPECT_EQ(ethernet.faults().counts.lost, 1u);
}

/* Only the ICRC is wrong: all headers, and the padding behind the packet, are as they were. */
TEST_F(RulesOnSwitchTest, Corrupt)
{
	set("corrupt");
	for (const bool ipv4 : {true, false}) {
		for (uint32_t i = 0; i < 300; i++) {
			hosts[1].got.clear();
			const Bytes sent = packet({.psn = i, .ipv4 = ipv4, .payload = i % 3});
			ethernet.forward(0, sent, now);
			const Bytes &got = hosts[1].got.at(0);
			ASSERT_NE(got, sent);
			const auto parsed = parse(got);
			ASSERT_TRUE(std::holds_alternative<ParseError>(parsed));
			EXPECT_EQ(std::get<ParseError>(parsed), ParseError::BadIcrc);
			EXPECT_EQ(faults::read_roce(got)->psn.value(), i);
		}
	}
	hosts[1].got.clear();
	const Bytes other = frame(1, 0);
	ethernet.forward(0, other, now);
	EXPECT_NE(hosts[1].got.at(0), other);
}

TEST_F(RulesOnSwitchTest, Mark)
{
	set("mark nth=2");
	send(1, 3);
	for (size_t i = 0; i < 3; i++) {
		const auto parsed = parse(hosts[1].got.at(i));
		ASSERT_TRUE(std::holds_alternative<Packet>(parsed));
		EXPECT_EQ(std::get<Packet>(parsed).path.congested(), i == 1);
	}
	EXPECT_EQ(ethernet.faults().counts.marked, 1u);
}

TEST_F(RulesOnSwitchTest, Duplicate)
{
	set("duplicate psn=3");
	send(1, 4);
	EXPECT_EQ(psns(), (Psns{1, 2, 3, 3, 4}));
	EXPECT_EQ(ethernet.faults().counts.duplicated, 1u);
}

TEST_F(RulesOnSwitchTest, NothingButACount)
{
	set("count psn=3");
	send(3, 3);
	EXPECT_EQ(comments(), Comments{"fault: count, rule 1, to port 1"});
	EXPECT_EQ(psns(), Psns{3});
	EXPECT_EQ(ethernet.faults().rules()[0].rule.hits(), 1u);
}

TEST_F(RulesOnSwitchTest, Delay)
{
	set("delay by=5ms psn=2;delay by=7ms psn=3");
	send(1, 3);
	EXPECT_EQ(comments(), Comments{"fault: delay 7000us, rule 2, to port 1"});
	EXPECT_EQ(psns(), Psns{1});
	EXPECT_EQ(ethernet.next_due(), now + 5ms);
	now += 4ms;
	ethernet.release_held(now);
	send(4, 4);
	EXPECT_EQ(psns(), (Psns{1, 4}));
	now += 1ms;
	ethernet.release_held(now);
	EXPECT_EQ(psns(), (Psns{1, 4, 2}));
	now += 1s;
	ethernet.release_held(now);
	EXPECT_EQ(psns(), (Psns{1, 4, 2, 3}));
	EXPECT_FALSE(ethernet.holds());
	EXPECT_EQ(ethernet.faults().counts.delayed, 2u);
}

TEST_F(RulesOnSwitchTest, ADelayKeepsTheOrder)
{
	set("delay by=5ms");
	send(1, 20);
	now += 5ms;
	ethernet.release_held(now);
	Psns all(20);
	std::iota(all.begin(), all.end(), 1);
	EXPECT_EQ(psns(), all);
}

TEST_F(RulesOnSwitchTest, Reorder)
{
	set("reorder by=2 psn=2");
	send(1, 5);
	EXPECT_EQ(psns(), (Psns{1, 3, 4, 2, 5}));
	set("reorder by=3 psn=12; reorder by=1 psn=13");
	send(11, 16);
	EXPECT_EQ(psns(), (Psns{1, 3, 4, 2, 5, 11, 14, 13, 15, 12, 16}));
	EXPECT_EQ(ethernet.faults().counts.reordered, 3u);
}

/* A frame overtakes when it arrives, not when it is held back itself. */
TEST_F(RulesOnSwitchTest, AFrameThatIsHeldBackOvertakesNone)
{
	set("reorder by=1 psn=2; reorder by=1 psn=3");
	send(1, 3);
	EXPECT_EQ(psns(), Psns{1});
	send(4, 5);
	EXPECT_EQ(psns(), (Psns{1, 4, 2, 3, 5}));
}

TEST_F(RulesOnSwitchTest, AReleasedFrameOvertakes)
{
	set("reorder by=2 psn=2; delay by=5ms psn=3");
	send(1, 4);
	EXPECT_EQ(psns(), (Psns{1, 4}));
	ethernet.release_held(now + 5ms);
	EXPECT_EQ(psns(), (Psns{1, 4, 3, 2}));
	EXPECT_FALSE(ethernet.holds());
}

TEST_F(RulesOnSwitchTest, WhatNothingOvertakesGoesInTime)
{
	set("reorder by=2 psn=2");
	send(1, 3);
	EXPECT_EQ(psns(), (Psns{1, 3}));
	ethernet.release_held(now + 99ms);
	EXPECT_TRUE(ethernet.holds());
	ethernet.release_held(now + 100ms);
	EXPECT_EQ(psns(), (Psns{1, 3, 2}));
}

TEST_F(RulesOnSwitchTest, OneFrameMayHaveSeveral)
{
	set("duplicate psn=2;delay by=1ms psn=2;mark psn=2");
	send(1, 3);
	ethernet.release_held(now + 1ms);
	EXPECT_EQ(psns(), (Psns{1, 3, 2, 2}));
	EXPECT_EQ(ethernet.faults().counts.marked, 1u);
}

TEST_F(RulesOnSwitchTest, DelayedFramesOfAHostThatLeavesAreForgotten)
{
	set("delay by=5ms");
	send(1, 3);
	ethernet.detach(1);
	EXPECT_FALSE(ethernet.holds());
}

/* 64 MiB, as a guest must not fill the memory of the switch. What holds a frame is 256 bytes. */
TEST_F(RulesOnSwitchTest, TooManyDelayedFramesAreDropped)
{
	set("delay by=60s");
	const Bytes large = frame(1, 0, 0, 60000);
	for (int i = 0; i < 2000; i++)
		ethernet.forward(0, large, now);
	EXPECT_EQ(comments(), (Comments{"fault: delay 60000000us, rule 1, to port 1",
	                                "fault: drop, no room, to port 1"}));
	ethernet.release_held(now + 60s);
	EXPECT_EQ(hosts[1].got.size(), (64u << 20) / (60000 + 256));
	EXPECT_EQ(ethernet.faults().counts.lost, 2000 - hosts[1].got.size());
}

TEST_F(RulesOnSwitchTest, TooManySmallDelayedFramesAreDropped)
{
	set("delay by=60s");
	const Bytes small = frame(1, 0, 0, 14);
	constexpr uint32_t kRoom = (64u << 20) / (14 + 256);
	for (uint32_t i = 0; i < kRoom + 1000; i++)
		ethernet.forward(0, small, now);
	EXPECT_EQ(ethernet.faults().counts.lost, 1000u);
	/* The room is there again. */
	ethernet.release_held(now + 60s);
	EXPECT_EQ(hosts[1].got.size(), kRoom);
	ethernet.forward(0, small, now);
	EXPECT_EQ(ethernet.faults().counts.lost, 1000u);
}

TEST_F(RulesOnSwitchTest, EachCopyOfAFrameIsJudged)
{
	set("drop to=00:00:00:00:00:02");
	ethernet.forward(0, frame(kBroadcast, 0, 7), now);
	EXPECT_EQ(hosts[1].tags(), std::vector<uint32_t>{7});
	EXPECT_TRUE(hosts[2].got.empty());
}

TEST_F(RulesOnSwitchTest, AddingDoesNotClear)
{
	set("drop psn=1");
	set("drop psn=2");
	send(1, 3);
	EXPECT_EQ(psns(), Psns{3});
	ethernet.faults().clear();
	EXPECT_FALSE(ethernet.faults().any());
	set("drop psn=3");
	EXPECT_EQ(ethernet.faults().rules().at(0).number, 3u);
}

TEST_F(RulesOnSwitchTest, AllRulesOrNone)
{
	FaultSet &faults = ethernet.faults();
	EXPECT_TRUE(
	        faults.add_rules("drop psn=1;drop opcode=X;drop").starts_with("rule 2: opcode: "));
	EXPECT_TRUE(faults.add_rules("drop psn=1;").starts_with("rule 2: action: "));
	EXPECT_FALSE(faults.any());
	std::string many = "drop psn=1";
	for (int i = 1; i < 64; i++)
		many += ";drop psn=1";
	EXPECT_NE(faults.add_rules(many + ";drop psn=1"), "");
	EXPECT_EQ(faults.add_rules(many), "");
	EXPECT_NE(faults.add_rules("drop psn=1"), "");
	EXPECT_EQ(faults.rules().size(), 64u);
}

/* A rule that will not act again still makes frames pass the switch, in their order. */
TEST_F(RulesOnSwitchTest, SpentRulesStay)
{
	set("drop once");
	send(1, 3);
	EXPECT_EQ(psns(), (Psns{2, 3}));
	EXPECT_TRUE(ethernet.faults().any());
}

TEST_F(RulesOnSwitchTest, PercentagesAreNotedToo)
{
	ethernet.faults().set_percent(FaultSet::kLoss, 100);
	send(1, 1);
	EXPECT_EQ(comments(), Comments{"fault: drop, by percentage, to port 1"});
	ethernet.faults().set_percent(FaultSet::kLoss, 0);
	ethernet.faults().set_percent(FaultSet::kMark, 100);
	send(2, 2);
	EXPECT_EQ(comments(), Comments{"fault: mark, by percentage, to port 1"});
	ethernet.forward(0, frame(1, 0), now);
	EXPECT_EQ(comments(), Comments{});
}

/* What is captured at one host's port. */
TEST_F(RulesOnSwitchTest, FramesThatConcernAHost)
{
	const std::vector<uint64_t> one{1};
	EXPECT_TRUE(ethernet.concerns(0, frame(1, 0), one));
	EXPECT_TRUE(ethernet.concerns(1, frame(0, 1), one));
	EXPECT_TRUE(ethernet.concerns(0, frame(kBroadcast, 0), one));
	EXPECT_TRUE(ethernet.concerns(0, frame(99, 0), one));
	EXPECT_FALSE(ethernet.concerns(0, frame(2, 0), one));
	EXPECT_FALSE(ethernet.concerns(2, frame(0, 2), one));
	EXPECT_FALSE(ethernet.concerns(0, Bytes(5), one));
}

} // namespace
} // namespace tern::wire
