// SPDX-License-Identifier: GPL-2.0-or-later
/* The event loop under a clock that the test sets. */
#include "qemu/fabric/real_time.h"

#include <gtest/gtest.h>

#include "tests/unit/fabric/frames.h"

namespace tern::fabric::test {
namespace {

class SetClock final : public Clock {
public:
	uint64_t now() override { return time; }

	uint64_t time = 5000;
};

struct RealTimeTest : testing::Test {
	EventLoop loop;
	SetClock clock;
	RealTime real{loop, clock};
};

TEST_F(RealTimeTest, NothingHappensBeforeItsTime)
{
	std::vector<uint64_t> happened;
	loop.at(100, [&] { happened.push_back(loop.now()); });
	clock.time += 99;
	real.advance();
	EXPECT_TRUE(happened.empty());
	EXPECT_EQ(loop.now(), 99u);
	clock.time += 1;
	real.advance();
	EXPECT_EQ(happened, std::vector<uint64_t>{100});
}

TEST_F(RealTimeTest, TellsHowLongToWait)
{
	EXPECT_FALSE(real.until_next());
	loop.at(100, [] {});
	EXPECT_EQ(real.until_next(), 100u);
	clock.time += 30;
	EXPECT_EQ(real.until_next(), 70u);
	clock.time += 300;
	EXPECT_EQ(real.until_next(), 0u) << "late";
}

TEST_F(RealTimeTest, WhatIsLateHappensAtItsOwnTime)
{
	std::vector<uint64_t> happened;
	for (const uint64_t when : {300, 100, 200})
		loop.at(when, [&] { happened.push_back(loop.now()); });
	clock.time += 1000;
	real.advance();
	EXPECT_EQ(happened, (std::vector<uint64_t>{100, 200, 300}));
	EXPECT_EQ(loop.now(), 1000u);
}

TEST_F(RealTimeTest, AnEventMayAdvanceToo)
{
	unsigned events = 0;
	loop.at(100, [&] {
		real.advance();
		events++;
		EXPECT_EQ(loop.now(), 100u);
	});
	loop.at(200, [&] { events++; });
	clock.time += 1000;
	real.advance();
	EXPECT_EQ(events, 2u);
}

/* A process that was late by a second sends what it could have sent, and no more. */
TEST_F(RealTimeTest, RatesAreRightWhenLate)
{
	Net net(2);
	RealTime late(net.loop, clock);
	const LinkConfig link{.rate = 8'000'000, .delay = 0}; /* a byte each us */
	const unsigned sw = net.fabric.add_switch({});
	net.plug(1, sw, link);
	net.plug(2, sw, link);
	net.fabric.update_routes();
	const Bytes frame = plain_frame(mac(2), mac(1), 1000 - Port::kFrameOverhead);
	for (unsigned i = 0; i < 100; i++)
		net.send(1, frame);
	clock.time += 51'000'000; /* of which one passes at the first link */
	late.advance();
	EXPECT_EQ(net.received(2), 50u);
	clock.time += 50'000'000;
	late.advance();
	EXPECT_EQ(net.received(2), 100u);
}

} // namespace
} // namespace tern::fabric::test
