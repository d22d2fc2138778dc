// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/shm/event_poll.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qemu/shm/bell.h"
#include "qemu/shm/segment.h"

namespace tern::shm {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

/* Whether wait() comes back before the time is over: it is told by a timeout that no test has. */
constexpr uint64_t kLong = 60'000 * kMillisecond;

TEST(EventPoll, EachRingCountsOnceAndNobodyReadsTheBell)
{
	const Bell bell = Bell::make();
	const EventPoll poll;
	poll.watch(bell.fd(), EventPoll::News::Bell);
	for (int i = 0; i < 3; i++) {
		bell.ring();
		EXPECT_FALSE(poll.wait(kLong)) << "a bell is no message";
	}
	/* Nothing is left that would keep the next sleeper awake, though nobody read. */
	uint64_t rings = 0;
	EXPECT_FALSE(poll.wait(kMillisecond));
	ASSERT_EQ(read(bell.fd(), &rings, sizeof(rings)), sizeof(rings));
	EXPECT_EQ(rings, 3);
}

/* As another process has it, which gets the listener only. */
TEST(EventPoll, HearsABellThatItCannotRing)
{
	const BellPair pair = BellPair::make();
	const EventPoll poll;
	pair.bell.ring();
	poll.watch(pair.listener.get(), EventPoll::News::Bell);
	EXPECT_FALSE(poll.wait(kLong)) << "rung before";
	for (int i = 0; i < 3; i++) {
		pair.bell.ring();
		EXPECT_FALSE(poll.wait(kLong));
	}
	const auto begin = std::chrono::steady_clock::now();
	EXPECT_FALSE(poll.wait(kMillisecond));
	EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1))
	        << "each counts once";
	const uint64_t one = 1;
	EXPECT_EQ(write(pair.listener.get(), &one, sizeof(one)), -1);
}

TEST(EventPoll, TellsOfAMessageAlsoBesideABell)
{
	std::array<int, 2> ends;
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
	const Fd mine(ends[0]), theirs(ends[1]);
	const Bell bell = Bell::make();
	const EventPoll poll;
	poll.watch(mine.get(), EventPoll::News::Message);
	poll.watch(bell.fd(), EventPoll::News::Bell);
	bell.ring();
	ASSERT_EQ(write(theirs.get(), "x", 1), 1);
	EXPECT_TRUE(poll.wait(kLong));
	EXPECT_FALSE(poll.wait(kMillisecond)) << "told of once";
}

TEST(EventPoll, TellsThatAFileCannotBeWatched)
{
	const Bell bell = Bell::make();
	const Fd file = make_segment("test", 4096);
	const EventPoll poll;
	EXPECT_TRUE(poll.watch(bell.fd(), EventPoll::News::Bell));
	EXPECT_FALSE(poll.watch(file.get(), EventPoll::News::Bell));
	EXPECT_EQ(errno, EPERM);
}

TEST(EventPoll, ForgetsABellThatOthersStillHave)
{
	Bell bell = Bell::make();
	const Fd theirs(dup(bell.fd()));
	const EventPoll poll;
	poll.watch(bell.fd(), EventPoll::News::Message);
	poll.forget(bell.fd());
	bell.ring();
	EXPECT_FALSE(poll.wait(kMillisecond));
}

} // namespace
} // namespace tern::shm
