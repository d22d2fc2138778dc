// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/fabric/port.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/fabric/frames.h"

namespace tern::fabric {
namespace {

using test::Bytes;
using test::plain_frame;
using test::Sink;

constexpr Mac kA = test::mac(1), kB = test::mac(2);

/* Two ports and a link of a byte a nanosecond between them. */
struct PortTest : ::testing::Test {
	PortTest() { Port::connect(a, b); }

	void send(size_t size, uint8_t priority = 0)
	{
		a.send(pool.make(plain_frame(kB, kA, size), priority));
	}
	void run()
	{
		while (loop.step()) {
		}
	}

	EventLoop loop;
	FramePool pool;
	Sink at_a{loop}, at_b{loop};
	LinkConfig link{.rate = 8'000'000'000, .delay = 500};
	Port a{loop, pool, at_a, 0, {}, link};
	Port b{loop, pool, at_b, 0, {}, link};
};

TEST_F(PortTest, RateAndDelay)
{
	send(100);
	send(200);
	run();
	EXPECT_EQ(at_b.times, (std::vector<uint64_t>{124 + 500, 124 + 224 + 500}));
	EXPECT_EQ(a.stats().busy_ns, 348u);
	EXPECT_EQ(at_a.left, 2u);
}

/* 84 bytes at 400 Gb/s take 1.68 ns. */
TEST_F(PortTest, FractionsOfANanosecondAddUp)
{
	Sink at_c{loop}, at_d{loop};
	const LinkConfig fast{.rate = 400'000'000'000, .delay = 0};
	Port c{loop, pool, at_c, 0, {}, fast}, d{loop, pool, at_d, 0, {}, fast};
	Port::connect(c, d);
	for (int i = 0; i < 1000; i++)
		c.send(pool.make(plain_frame(kB, kA, 60), 0));
	run();
	EXPECT_EQ(at_d.times.back(), 1680u);
}

TEST_F(PortTest, PausedForAsLongAsItIsTold)
{
	b.pause_peer(3, 10); /* 640 ns from its arrival at 584 on */
	loop.run_for(584);
	send(100, 3);
	send(76, 0);
	run();
	EXPECT_EQ(at_b.times, (std::vector<uint64_t>{584 + 100 + 500, 584 + 640 + 124 + 500}));
	EXPECT_EQ(a.stats().pauses_received[3], 1u);
	EXPECT_EQ(b.stats().pauses_sent[3], 1u);
	EXPECT_TRUE(at_a.frames.empty()) << "a pause frame is for the MAC alone";
}

TEST_F(PortTest, ZeroQuantaEndThePause)
{
	b.pause_peer(3, kMaxQuanta);
	loop.run_for(584);
	send(76, 3);
	b.pause_peer(3, 0);
	run();
	EXPECT_EQ(at_b.times, (std::vector<uint64_t>{584 + 584 + 100 + 500}));
	EXPECT_EQ(a.stats().pauses_received[3], 1u);
}

/* A peer may repeat its pause thousands of times before it ends. */
TEST_F(PortTest, AFloodOfPausesLeavesFewEvents)
{
	constexpr int kFrames = 10'000;
	for (int i = 0; i < kFrames; i++) {
		b.pause_peer(3, kMaxQuanta);
		loop.run_for(100);
	}
	send(76, 3);
	loop.run_for(1000);
	unsigned steps = 0;
	while (at_b.frames.empty() && loop.step())
		steps++;
	/* The last one was sent 100 ns ago, and arrived 584 ns after that. */
	const uint64_t paused_at = (kFrames - 1) * 100 + 84 + 500;
	EXPECT_EQ(at_b.times,
	          (std::vector<uint64_t>{paused_at + kMaxQuanta * uint64_t{64} + 100 + 500}));
	EXPECT_LT(steps, 50u);
}

/* Each pause ends before all that came earlier. The port may be late then. */
TEST_F(PortTest, AFloodOfEverShorterPausesLeavesFewEvents)
{
	for (uint16_t quanta = kMaxQuanta; quanta > 10'000; quanta -= 10) {
		b.pause_peer(3, quanta);
		loop.run_for(100);
	}
	const uint64_t end = kMaxQuanta * uint64_t{64};
	send(76, 3);
	loop.run_for(1000);
	unsigned steps = 0;
	while (at_b.frames.empty() && loop.step())
		steps++;
	EXPECT_LE(at_b.times.at(0), 84 + 500 + end + 100 + 500);
	EXPECT_LT(steps, 50u);
}

/* After a flood, too, a port goes on when its peer ends the pause, and each priority when its own
 * pause ends. */
TEST_F(PortTest, AfterAFloodOfPausesEachPriorityGoesOnInTime)
{
	for (int i = 0; i < 1000; i++) {
		b.pause_peer(3, kMaxQuanta);
		b.pause_peer(3, 0);
		loop.run_for(200);
	}
	loop.run_for(1000);
	b.pause_peer(3, kMaxQuanta);
	b.pause_peer(2, kMaxQuanta);
	loop.run_for(1000);
	const uint64_t begin = loop.now() - 1000;
	send(76, 3);
	send(76, 2);
	loop.run_for(1000);
	b.pause_peer(3, 0);
	run();
	EXPECT_EQ(at_b.times,
	          (std::vector<uint64_t>{begin + 2000 + 84 + 500 + 100 + 500,
	                                 begin + 2 * 84 + 500 + kMaxQuanta * uint64_t{64} + 100 +
	                                         500}));
}

/* Renews a pause of priority 3, without a gap, for @time ns, while a frame comes each 10 us. */
struct StormTest : PortTest {
	static constexpr uint64_t kLimit = 1'000'000;

	StormTest() { a.guard_against_storms(1 << 3, kLimit); }
	void storm(uint64_t time, bool with_frames = true)
	{
		for (uint64_t i = 0; i < time / 10'000; i++) {
			b.pause_peer(3, 1000); /* for 64 us */
			loop.run_for(1000);
			if (with_frames)
				send(76, 3);
			loop.run_for(9000);
		}
	}
};

TEST_F(StormTest, APauseWithoutEndIsIgnored)
{
	storm(990'000);
	EXPECT_EQ(a.stats().pause_storms, 0u);
	EXPECT_EQ(at_a.left, 0u);
	storm(4'010'000);
	EXPECT_EQ(a.stats().pause_storms, 1u);
	EXPECT_EQ(a.stats().storm_dropped, 500u);
	EXPECT_EQ(at_a.left, 500u) << "they no longer take room";
	EXPECT_EQ(a.queues.bytes(3), 0u);
	EXPECT_TRUE(at_b.frames.empty());
	EXPECT_EQ(a.stats().lost, 0u) << "the link has lost none";
}

/* The last pause ends 54 us after it. */
TEST_F(StormTest, IsOverAfterAQuietTime)
{
	storm(2'000'000);
	loop.run_for(kLimit);
	send(76, 3);
	loop.run_for(100'000);
	EXPECT_TRUE(at_b.frames.empty());
	send(76, 3);
	run();
	EXPECT_EQ(at_b.frames.size(), 1u);
	EXPECT_EQ(a.stats().storm_dropped, 201u);
	storm(2'000'000);
	EXPECT_EQ(a.stats().pause_storms, 2u);
}

TEST_F(StormTest, OtherPrioritiesAreObeyed)
{
	b.pause_peer(2, kMaxQuanta); /* for 4.2 ms */
	loop.run_for(1000);
	send(76, 2);
	storm(2'000'000);
	EXPECT_TRUE(at_b.frames.empty());
	send(76, 1);
	loop.run_for(10'000);
	EXPECT_EQ(at_b.frames.size(), 1u);
	EXPECT_EQ(a.queues.bytes(2), 76u);
	run();
	EXPECT_EQ(at_b.frames.size(), 2u);
}

/* Nobody waits for a priority that has nothing to send. */
TEST_F(StormTest, APauseThatHoldsNothingUpIsNone)
{
	storm(5'000'000, false);
	send(76, 3);
	storm(500'000, false);
	EXPECT_EQ(a.stats().pause_storms, 0u);
	storm(600'000, false);
	EXPECT_EQ(a.stats().pause_storms, 1u);
}

/* As congestion does it: each pause ends after less than the limit, by time or by its peer. */
TEST_F(StormTest, PausesWithGapsAreNone)
{
	for (int i = 0; i < 20; i++) {
		storm(900'000);
		if (i % 2)
			b.pause_peer(3, 0);
		loop.run_for(100'000);
	}
	EXPECT_EQ(a.stats().pause_storms, 0u);
	EXPECT_EQ(at_b.frames.size(), 20u * 90u);
}

TEST_F(StormTest, ACutLinkEndsIt)
{
	storm(2'000'000);
	for (const bool up : {false, true}) {
		a.set_up(up);
		b.set_up(up);
	}
	loop.run_for(10'000);
	send(76, 3);
	loop.run_for(10'000);
	EXPECT_EQ(at_b.frames.size(), 1u);
}

/* A peer may begin and end thousands of pauses before the first has lasted too long. */
TEST_F(StormTest, ManyPausesLeaveFewEvents)
{
	for (int i = 0; i < 1000; i++) {
		send(1000, 3);
		b.pause_peer(3, kMaxQuanta);
		loop.run_for(100);
		b.pause_peer(3, 0);
		loop.run_for(100);
	}
	b.set_up(false);
	a.set_up(false);
	unsigned steps = 0;
	while (loop.step())
		steps++;
	EXPECT_LT(steps, 50u);
}

TEST_F(PortTest, TheFrameThatIsBeingSentIsNotPaused)
{
	send(1000, 3);
	loop.run_for(10);
	b.pause_peer(3, kMaxQuanta);
	loop.run_for(2000);
	EXPECT_EQ(at_b.frames.size(), 1u);
}

TEST_F(PortTest, PausesGoAheadOfFrames)
{
	send(1000);
	send(1000);
	a.pause_peer(0, kMaxQuanta);
	loop.run_for(1024 + 84 + 500);
	EXPECT_EQ(b.stats().pauses_received[0], 1u);
}

/* One is being sent, one waits, one is in flight. */
TEST_F(PortTest, ACutLinkLosesWhatItCarries)
{
	for (int i = 0; i < 3; i++)
		send(276);
	loop.run_for(400);
	a.set_up(false);
	b.set_up(false);
	send(76);
	run();
	EXPECT_TRUE(at_b.frames.empty());
	EXPECT_EQ(a.stats().lost, 4u);
	EXPECT_EQ(pool.used(), 0u);
	a.set_up(true);
	b.set_up(true);
	send(76);
	run();
	EXPECT_EQ(at_b.frames.size(), 1u);
}

/* The events of what was lost come later and find other frames in flight. */
TEST_F(PortTest, ALinkThatComesBackAtOnce)
{
	send(76);
	loop.run_for(150);
	for (const bool up : {false, true}) {
		a.set_up(up);
		b.set_up(up);
	}
	send(76);
	run();
	EXPECT_EQ(at_b.times, (std::vector<uint64_t>{150 + 100 + 500}));
	EXPECT_EQ(a.stats().lost, 1u);
}

TEST_F(PortTest, ACutEndsAPause)
{
	b.pause_peer(3, kMaxQuanta);
	loop.run_for(584);
	for (const bool up : {false, true}) {
		a.set_up(up);
		b.set_up(up);
	}
	send(76, 3);
	loop.run_for(600);
	EXPECT_EQ(at_b.frames.size(), 1u);
}

/* 200 frames on a link with @config; how many came, and when, is in at_c. */
void send_all(EventLoop &loop, const LinkConfig &config, uint32_t seed, Sink &at_c)
{
	FramePool pool;
	Sink at_d{loop};
	Port c{loop, pool, at_c, 0, {}, config}, d{loop, pool, at_d, 0, {}, config};
	Port::connect(c, d, seed);
	for (int i = 0; i < 200; i++)
		d.send(pool.make(plain_frame(kA, kB, 76), 0));
	while (loop.step()) {
	}
	EXPECT_EQ(at_c.frames.size() + d.stats().lost, 200u);
	EXPECT_EQ(at_d.left, 200u);
}

TEST(PortChance, JitterVariesTheDelayAndKeepsTheOrder)
{
	EventLoop loop;
	Sink sink{loop};
	/* Frames leave each 100 ns. */
	send_all(loop, {.rate = 8'000'000'000, .delay = 1000, .jitter = 50}, 1, sink);
	ASSERT_EQ(sink.times.size(), 200u);
	uint64_t least = UINT64_MAX, most = 0;
	for (size_t i = 0; i < sink.times.size(); i++) {
		const uint64_t delay = sink.times[i] - 100 * (i + 1);
		least = std::min(least, delay);
		most = std::max(most, delay);
	}
	EXPECT_GE(least, 1000u);
	EXPECT_LT(least, 1010u);
	EXPECT_GT(most, 1040u);
	EXPECT_LE(most, 1050u);

	EventLoop slow;
	Sink late{slow};
	send_all(slow, {.rate = 8'000'000'000, .delay = 0, .jitter = 5000}, 1, late);
	EXPECT_TRUE(std::ranges::is_sorted(late.times));
}

/* Pause frames are neither sent nor received frames, so they are not lost ones either. */
TEST(PortChance, LostPausesAreNotCounted)
{
	EventLoop loop;
	FramePool pool;
	Sink at_c{loop}, at_d{loop};
	const LinkConfig config{.rate = 8'000'000'000, .delay = 0, .loss = 0.5};
	Port c{loop, pool, at_c, 0, {}, config}, d{loop, pool, at_d, 0, {}, config};
	Port::connect(c, d);
	for (int i = 0; i < 200; i++) {
		c.send(pool.make(plain_frame(kB, kA, 76), 0));
		c.pause_peer(3, 1);
	}
	while (loop.step()) {
	}
	EXPECT_LT(d.stats().pauses_received[3], c.stats().pauses_sent[3]);
	EXPECT_EQ(c.stats().tx_frames, 200u);
	EXPECT_EQ(c.stats().tx_frames, d.stats().rx_frames + c.stats().lost);
}

/* A host may send a pause frame as any other frame. Its peer obeys it and counts no frame. */
TEST_F(PortTest, APauseFrameOfTheOwnerCountsAsThoseOfThePort)
{
	const auto send_pause = [this] { a.send(pool.make(pause_frame(3, 1), 0)); };
	send_pause();
	run();
	EXPECT_EQ(b.stats().pauses_received[3], 1u);
	EXPECT_EQ(a.stats().tx_frames, 0u);
	EXPECT_EQ(b.stats().rx_frames, 0u);
	for (int i = 0; i < 3; i++)
		send_pause();
	loop.run_for(100);
	a.set_up(false);
	b.set_up(false);
	send_pause();
	run();
	EXPECT_EQ(a.stats().lost, 0u);
	EXPECT_EQ(at_a.left, 5u);
}

TEST(PortChance, LossFollowsFromTheSeed)
{
	const auto lost = [](double loss, uint32_t seed) {
		EventLoop loop;
		Sink sink{loop};
		send_all(loop, {.rate = 8'000'000'000, .delay = 0, .loss = loss}, seed, sink);
		return sink.times;
	};
	EXPECT_EQ(lost(0, 1).size(), 200u);
	EXPECT_EQ(lost(1, 1).size(), 0u);
	EXPECT_NEAR(static_cast<double>(lost(0.25, 1).size()), 150, 25);
	EXPECT_EQ(lost(0.25, 7), lost(0.25, 7));
	EXPECT_NE(lost(0.25, 7), lost(0.25, 8));
}

} // namespace
} // namespace tern::fabric
