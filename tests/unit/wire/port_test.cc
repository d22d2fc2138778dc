// SPDX-License-Identifier: GPL-2.0-or-later
/* When others wait for a port, for how long, and what it drops then. */
#include <gtest/gtest.h>

#include "qemu/wire/port.h"
#include "tests/unit/wire/frames.h"

namespace tern::wire {
namespace {

using namespace std::chrono_literals;

constexpr size_t kHighWater = 1000;

class Nobody final : public FrameSink {
public:
	Port *frame_from(Port &, Frame) override { return nullptr; }
};

class FakePort final : public Port {
public:
	explicit FakePort(FrameSink &sink) : Port(sink, kHighWater) {}

	bool deliver(Frame) override { return has_room(); }
	void flush() override { note_queued(); }
	void update_interest() override {}
	size_t queued() const override { return added - taken; }
	uint64_t consumed() const override { return taken; }

	size_t added = 0;
	size_t taken = 0;

private:
	void forward_frames() override {}
};

/* Sends one frame each time it is resumed, and is slow again whenever it is. */
class Sender final : public Port {
public:
	Sender(FrameSink &sink, unsigned frames) : Port(sink, kHighWater), left_(frames) {}

	bool deliver(Frame) override { return true; }
	void flush() override { flushed_after = resumed; }
	void update_interest() override {}
	size_t queued() const override { return 0; }
	uint64_t consumed() const override { return 0; }

	unsigned resumed = 0;
	unsigned flushed_after = 0;

private:
	void forward_frames() override
	{
		resumed++;
		if (left_ && left_--)
			hand_on(frame(1, 2));
	}

	unsigned left_;
};

/* Has each sender wait for @slow. */
class SlowSink final : public FrameSink {
public:
	Waitable *frame_from(Port &, Frame) override { return slow; }

	Port *slow = nullptr;
};

/* A host that takes each frame as soon as its sender waits would otherwise keep a step running. */
TEST(Ports, ResumeALimitedNumberOfTimes)
{
	SlowSink sink;
	Ports ports;
	ports.push_back(std::make_unique<FakePort>(sink));
	sink.slow = ports[0].get();
	auto made = std::make_unique<Sender>(sink, 1000);
	Sender &sender = *made;
	ports.push_back(std::move(made));
	sender.resume();
	ASSERT_EQ(sender.waiting_for(), sink.slow);
	EXPECT_TRUE(is_awaited(*sink.slow, ports));
	flush_and_resume(ports, SteadyTime());
	EXPECT_EQ(sender.resumed, 5u);
	EXPECT_EQ(sender.flushed_after, 5u);
	/* So the next step comes at once, and what it waits for must still be there. */
	EXPECT_TRUE(can_resume(ports));
	sink.slow->hang_up();
	EXPECT_TRUE(can_resume(ports));
	EXPECT_TRUE(is_awaited(*sink.slow, ports));
	sink.slow = nullptr;
	flush_and_resume(ports, SteadyTime());
	EXPECT_FALSE(can_resume(ports));
	EXPECT_FALSE(is_awaited(*ports[0], ports));
}

/* A sender whose frames fill what they are for. */
class FillingSender final : public Port {
public:
	FillingSender(FrameSink &sink, FakePort &to) : Port(sink, kHighWater), to_(to) {}

	bool deliver(Frame) override { return true; }
	void flush() override {}
	void update_interest() override {}
	size_t queued() const override { return 0; }
	uint64_t consumed() const override { return 0; }

	unsigned resumed = 0;

private:
	void forward_frames() override
	{
		resumed++;
		to_.added = to_.taken + kHighWater;
		hand_on(frame(1, 2));
	}

	FakePort &to_;
};

/* The first to resume must not have the others wait again before they had their turn. */
TEST(Ports, AllThatWaitForTheSameResume)
{
	SlowSink sink;
	Ports ports;
	auto made = std::make_unique<FakePort>(sink);
	FakePort &slow = *made;
	sink.slow = &slow;
	ports.push_back(std::move(made));
	std::vector<FillingSender *> senders;
	for (int i = 0; i < 2; i++) {
		auto sender = std::make_unique<FillingSender>(sink, slow);
		senders.push_back(sender.get());
		ports.push_back(std::move(sender));
		senders.back()->resume();
	}
	for (unsigned turn = 2; turn < 10; turn++) {
		flush_and_resume(ports, SteadyTime());
		EXPECT_EQ(senders[0]->resumed, turn - 1) << "there is no room";
		slow.taken = slow.added;
		flush_and_resume(ports, SteadyTime());
		EXPECT_EQ(senders[0]->resumed, turn);
		EXPECT_EQ(senders[1]->resumed, turn);
	}
}

class PortTest : public testing::Test {
protected:
	void wait_at(SteadyTime::duration time) { port.give_up_if_stalled(SteadyTime(time), 1s); }

	Nobody nobody;
	FakePort port{nobody};
};

TEST_F(PortTest, WhoTakesTooLittleIsGivenUp)
{
	port.added = kHighWater;
	for (int i = 0; i < 10; i++) {
		wait_at(5s + i * 100ms);
		EXPECT_TRUE(port.congested());
		port.taken += kHighWater / 50;
	}
	wait_at(6s);
	EXPECT_FALSE(port.congested());
	/* Until half is free. */
	port.flush();
	port.added = port.taken + kHighWater;
	EXPECT_FALSE(port.congested());
	port.taken += kHighWater / 2;
	port.flush();
	port.added = port.taken + kHighWater;
	EXPECT_TRUE(port.congested());
	wait_at(100s);
	EXPECT_TRUE(port.congested()) << "its time begins anew";
}

TEST_F(PortTest, WhoTakesAQuarterInTimeIsNot)
{
	for (int i = 0; i < 10; i++) {
		port.added = port.taken + kHighWater;
		wait_at(i * 900ms);
		EXPECT_TRUE(port.congested());
		port.taken += kHighWater / 4;
		wait_at(i * 900ms + 1ms);
	}
}

/* Nobody waited in between. */
TEST_F(PortTest, TimeWithoutCongestionDoesNotCount)
{
	port.added = kHighWater;
	wait_at(1s);
	port.taken = kHighWater / 2 + 1;
	port.flush();
	port.added += kHighWater;
	wait_at(10s);
	EXPECT_TRUE(port.congested());
}

/* Who does not wait yet would otherwise keep the queue above half, and so the others waiting. */
TEST_F(PortTest, AllWaitAboveHalfWhileOneWaits)
{
	port.added = kHighWater - 1;
	EXPECT_TRUE(port.deliver(frame(1, 2)));
	port.added++;
	EXPECT_FALSE(port.deliver(frame(1, 2)));
	wait_at(0s);
	port.taken = kHighWater / 2 - 1;
	port.flush();
	EXPECT_FALSE(port.deliver(frame(1, 2)));
	port.taken++;
	port.flush();
	EXPECT_TRUE(port.deliver(frame(1, 2)));
	port.added += kHighWater / 2 - 1;
	EXPECT_TRUE(port.deliver(frame(1, 2))) << "nobody waits any more";
}

TEST_F(PortTest, CopiesAreDroppedAndCountedWhenCongested)
{
	port.added = kHighWater - 1;
	EXPECT_TRUE(port.takes_copy());
	port.added++;
	EXPECT_FALSE(port.takes_copy());
	EXPECT_FALSE(port.takes_copy());
	EXPECT_EQ(port.stats().dropped, 2u);
}

} // namespace
} // namespace tern::wire
