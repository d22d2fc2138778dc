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

	bool deliver(Frame) override { return true; }
	void flush() override { note_queued(); }
	void update_interest() override {}
	size_t queued() const override { return added - taken; }
	uint64_t consumed() const override { return taken; }

	size_t added = 0;
	size_t taken = 0;

private:
	void forward_frames() override {}
};

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
