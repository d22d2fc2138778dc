// SPDX-License-Identifier: GPL-2.0-or-later
/* Who sends next: senders with much and with little to send, on a wire with and without room. */
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "qemu/rnic/network/scheduler.h"

namespace tern {
namespace {

constexpr unsigned kBulk = 1'000'000; /* packets, more than any test sends */

class Flow final : public Sender {
public:
	Flow(Scheduler &scheduler, const bool &room) : scheduler_(scheduler), room_(room) {}

	void post(unsigned packets)
	{
		posted += packets;
		scheduler_.activate(*this);
	}
	bool transmit(unsigned &budget) override
	{
		for (; budget && posted; budget--, posted--, sent++) {
			if (room_)
				continue;
			scheduler_.park(*this, 0);
			return false;
		}
		return !budget;
	}

	unsigned posted = 0;
	unsigned sent = 0;

private:
	Scheduler &scheduler_;
	const bool &room_;
};

class SchedulerTest : public ::testing::Test {
protected:
	std::vector<std::unique_ptr<Flow>> make(unsigned count)
	{
		std::vector<std::unique_ptr<Flow>> flows;
		for (unsigned i = 0; i < count; i++)
			flows.push_back(std::make_unique<Flow>(scheduler_, room_));
		return flows;
	}
	/** Flows that always have more to send, and have had some turns. */
	std::vector<std::unique_ptr<Flow>> make_bulk(unsigned count)
	{
		auto flows = make(count);
		for (const auto &flow : flows)
			flow->post(kBulk);
		run(3 * count * Sender::kTurn);
		return flows;
	}
	void run(unsigned packets)
	{
		while (packets && !scheduler_.empty())
			scheduler_.run_turn(packets);
	}
	/** Returns how many turns pass until @flow has sent what it has. */
	unsigned turns_until_sent(const Flow &flow)
	{
		unsigned turns = 0;
		for (; flow.posted; turns++) {
			unsigned budget = Sender::kTurn;
			scheduler_.run_turn(budget);
		}
		return turns;
	}

	bool room_ = true;
	Scheduler scheduler_;
	Flow one_{scheduler_, room_};
};

TEST_F(SchedulerTest, ThoseThatAlwaysSendTakeTurns)
{
	const auto bulk = make_bulk(4);
	const unsigned before = bulk[0]->sent;
	run(4 * Sender::kTurn);
	for (const auto &flow : bulk)
		EXPECT_EQ(flow->sent, before + Sender::kTurn);
}

TEST_F(SchedulerTest, AnInterruptedTurnGoesOn)
{
	const auto bulk = make_bulk(4);
	const unsigned before = bulk[0]->sent;
	run(Sender::kTurn - 1);
	EXPECT_EQ(bulk[0]->sent, before + Sender::kTurn - 1);
	one_.post(1);
	EXPECT_EQ(turns_until_sent(one_), 1u);
	const unsigned second = bulk[1]->sent;
	run(Sender::kTurn);
	EXPECT_EQ(bulk[0]->sent, before + Sender::kTurn);
	EXPECT_EQ(bulk[1]->sent, second + Sender::kTurn - 1);
}

TEST_F(SchedulerTest, OneThatWasIdleGoesOnAfterAnInterruption)
{
	const auto bulk = make_bulk(4);
	const unsigned before = bulk[0]->sent;
	one_.post(Sender::kTurn);
	run(1);
	run(Sender::kTurn - 1);
	EXPECT_EQ(one_.posted, 0u);
	EXPECT_EQ(bulk[0]->sent, before);
}

TEST_F(SchedulerTest, OneThatWasIdleIsNext)
{
	const auto bulk = make_bulk(64);
	one_.post(1);
	EXPECT_EQ(turns_until_sent(one_), 1u);
}

/* One packet after the other, as a program does that waits for each. */
TEST_F(SchedulerTest, OneThatSendsLittleIsNextForOneTurnInEachRound)
{
	const auto bulk = make_bulk(64);
	unsigned credit = Sender::kTurn;
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < credit; i++) {
			one_.post(1);
			ASSERT_EQ(turns_until_sent(one_), 1u) << round << ", " << i;
		}
		one_.post(1);
		EXPECT_EQ(turns_until_sent(one_), 65u);
		credit = Sender::kTurn - 1; /* of this turn it has sent one packet */
	}
}

TEST_F(SchedulerTest, AloneItIsAlwaysNext)
{
	for (unsigned i = 0; i < 3 * Sender::kTurn; i++) {
		one_.post(1);
		EXPECT_EQ(turns_until_sent(one_), 1u);
		EXPECT_TRUE(scheduler_.empty());
	}
}

TEST_F(SchedulerTest, OneThatIsIdleAtItsTurnHasCreditAgain)
{
	const auto bulk = make_bulk(4);
	one_.post(Sender::kTurn);
	run(Sender::kTurn);
	ASSERT_EQ(one_.posted, 0u);
	run(4 * Sender::kTurn);
	one_.post(1);
	EXPECT_EQ(turns_until_sent(one_), 1u);
}

/* However fast those that send little come again, each gets two turns for one of the other. */
TEST_F(SchedulerTest, ManyThatSendLittleLeaveItsShareToOneThatSendsMuch)
{
	const auto bulk = make_bulk(1);
	const auto many = make(64);
	const unsigned before = bulk[0]->sent;
	constexpr unsigned kPackets = 100'000;
	for (unsigned i = 0; i < kPackets; i++) {
		for (const auto &flow : many)
			if (!flow->posted)
				flow->post(1);
		run(1);
	}
	EXPECT_GT(bulk[0]->sent - before, kPackets / (2 * 64 + 1));
}

/* Doorbells without end of QPs that have nothing to send, as many in each round as the engine takes
 * in one. */
TEST_F(SchedulerTest, ThoseThatRingForNothingLeaveItsShareToOneThatSendsMuch)
{
	const auto bulk = make_bulk(1);
	const auto many = make(64);
	const unsigned before = bulk[0]->sent;
	constexpr unsigned kBudget = 16;
	constexpr unsigned kEngineRounds = 10'000;
	for (unsigned i = 0; i < kEngineRounds; i++) {
		for (unsigned ring = 0; ring < kBudget; ring++)
			many[(kBudget * i + ring) % many.size()]->post(0);
		run(kBudget);
	}
	EXPECT_GT(bulk[0]->sent - before, kEngineRounds * kBudget / (2 * 64 + 1));
}

TEST_F(SchedulerTest, OneWithAMessageOfManyPacketsJoinsTheRound)
{
	const auto bulk = make_bulk(4);
	one_.post(3 * Sender::kTurn);
	EXPECT_EQ(turns_until_sent(one_), 1 + 5 + 5u);
}

/* A full wire parks all that try. When there is room again, those that send much wait longer. */
TEST_F(SchedulerTest, OneThatSendsLittleIsNextAfterAFullWire)
{
	const auto bulk = make_bulk(64);
	room_ = false;
	run(64 * Sender::kTurn);
	ASSERT_TRUE(scheduler_.empty());
	one_.post(1);
	run(1);
	ASSERT_TRUE(one_.parked());
	room_ = true;
	scheduler_.unpark(0);
	EXPECT_EQ(turns_until_sent(one_), 1u);
}

TEST_F(SchedulerTest, RemovalEndsTheTurnsOfOthersThatAreIdle)
{
	auto bulk = make_bulk(1);
	one_.post(1);
	run(2);
	ASSERT_EQ(one_.posted, 0u);
	scheduler_.remove(*bulk[0]);
	EXPECT_TRUE(scheduler_.empty());
	for (unsigned i = 0; i < 2 * Sender::kTurn; i++) {
		one_.post(1);
		EXPECT_EQ(turns_until_sent(one_), 1u);
	}
	scheduler_.remove(one_);
	EXPECT_TRUE(scheduler_.empty());
}

} // namespace
} // namespace tern
