// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/vfio/channel.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "tests/unit/vfio/client.h"

namespace tern::vfio::test {
namespace {

class ChannelTest : public testing::Test {
protected:
	ChannelTest()
	{
		int fds[2];
		EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		client = Fd(fds[0]);
		channel.emplace(Fd(fds[1]), stop.get());
	}

	void send(const void *bytes, size_t size)
	{
		ASSERT_EQ(::send(client.get(), bytes, size, 0), static_cast<ssize_t>(size));
	}
	/* A header, and so many bytes behind it that say the same. */
	void send_header(uint32_t size)
	{
		const Header header{.id = 7, .command = 4, .size = size, .flags = 0, .error = 0};
		send(&header, sizeof(header));
	}
	void send_fds(size_t count)
	{
		const Header header{.id = 7, .command = 4, .size = 16, .flags = 0, .error = 0};
		iovec bytes{const_cast<Header *>(&header), sizeof(header)};
		alignas(cmsghdr) std::byte control[CMSG_SPACE(64 * sizeof(int))]{};
		msghdr to{};
		to.msg_iov = &bytes;
		to.msg_iovlen = 1;
		to.msg_control = control;
		to.msg_controllen = CMSG_SPACE(count * sizeof(int));
		cmsghdr *const rights = CMSG_FIRSTHDR(&to);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(count * sizeof(int));
		for (size_t i = 0; i < count; i++) {
			const int fd = stop.get();
			std::memcpy(CMSG_DATA(rights) + i * sizeof(fd), &fd, sizeof(fd));
		}
		ASSERT_EQ(sendmsg(client.get(), &to, 0), 16);
	}

	Fd stop{eventfd(0, EFD_CLOEXEC)};
	Fd client;
	std::optional<Channel> channel;
};

TEST_F(ChannelTest, TakesWholeMessages)
{
	send_header(16 + 3);
	send("abc", 3);
	send_header(16);
	const auto first = channel->receive();
	ASSERT_TRUE(first);
	EXPECT_EQ(first->header.id, 7);
	EXPECT_EQ(first->data.size(), 3u);
	EXPECT_EQ(std::to_integer<char>(first->data[2]), 'c');
	const auto second = channel->receive();
	ASSERT_TRUE(second);
	EXPECT_TRUE(second->data.empty());
}

TEST_F(ChannelTest, TakesDescriptors)
{
	send_fds(kMaxFds);
	const auto message = channel->receive();
	ASSERT_TRUE(message);
	EXPECT_EQ(message->fds.size(), kMaxFds);
}

TEST_F(ChannelTest, RefusesMoreDescriptorsThanAgreed)
{
	send_fds(kMaxFds + 1);
	EXPECT_FALSE(channel->receive());
	EXPECT_NE(channel->error(), "");
}

TEST_F(ChannelTest, RefusesASizeBelowTheHeaders)
{
	send_header(15);
	EXPECT_FALSE(channel->receive());
	EXPECT_NE(channel->error(), "");
}

TEST_F(ChannelTest, RefusesASizeAboveTheLimit)
{
	send_header(kMaxMessage + 1);
	EXPECT_FALSE(channel->receive());
	EXPECT_NE(channel->error(), "");
}

TEST_F(ChannelTest, EndsWithTheClient)
{
	send("half a header", 13);
	client = Fd(-1);
	EXPECT_FALSE(channel->receive());
	EXPECT_NE(channel->error(), "");
	const Header request{};
	EXPECT_FALSE(channel->send(request, {}));
}

TEST_F(ChannelTest, AClientThatGoesBetweenMessagesIsNoError)
{
	send_header(16);
	client = Fd(-1);
	EXPECT_TRUE(channel->receive());
	EXPECT_FALSE(channel->receive());
	EXPECT_EQ(channel->error(), "");
}

TEST_F(ChannelTest, AClientThatGoesBeforeTheBodyIsOne)
{
	send_header(16 + 3);
	client = Fd(-1);
	EXPECT_FALSE(channel->receive());
	EXPECT_NE(channel->error(), "");
}

TEST_F(ChannelTest, EndsWhenItIsTimeToStop)
{
	send("half a header", 13);
	const uint64_t one = 1;
	ASSERT_EQ(write(stop.get(), &one, sizeof(one)), 8);
	EXPECT_FALSE(channel->receive());
	EXPECT_EQ(channel->error(), "");
}

TEST_F(ChannelTest, AnswersWithTheRequestsNumber)
{
	const Header request{.id = 9, .command = 5, .size = 16, .flags = 0, .error = 0};
	Reply reply;
	reply.append(uint32_t{1});
	ASSERT_TRUE(channel->send(request, reply));
	Header header;
	ASSERT_EQ(recv(client.get(), &header, sizeof(header), MSG_WAITALL), 16);
	EXPECT_EQ(header.id, 9);
	EXPECT_EQ(header.command, 5);
	EXPECT_EQ(header.size, 20u);
	EXPECT_EQ(header.flags, kTypeReply);
}

TEST_F(ChannelTest, AnErrorIsAHeaderOnly)
{
	Reply reply = Reply::failed(EINVAL);
	reply.append(uint32_t{1});
	ASSERT_TRUE(channel->send(Header{}, reply));
	Header header;
	ASSERT_EQ(recv(client.get(), &header, sizeof(header), MSG_WAITALL), 16);
	EXPECT_EQ(header.size, 16u);
	EXPECT_EQ(header.flags, kTypeReply | kError);
	EXPECT_EQ(header.error, uint32_t{EINVAL});
}

} // namespace
} // namespace tern::vfio::test
