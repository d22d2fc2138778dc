// SPDX-License-Identifier: GPL-2.0-or-later
/* Files that a peer sends to the switch and that take long to close. */
#include <array>
#include <chrono>
#include <filesystem>
#include <gtest/gtest.h>
#include <iterator>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "qemu/shm/fd.h"
#include "qemu/wire/server.h"

namespace tern::wire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLinger = 30; /* seconds */

/** A TCP connection with data that its receiver does not read. close() of the sender blocks for
 * kLinger, or until this object is destroyed. */
class LingeringConnection {
public:
	LingeringConnection()
	{
		const Fd listener(socket(AF_INET, SOCK_STREAM, 0));
		sockaddr_in address{};
		address.sin_family = AF_INET;
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		auto *const where = reinterpret_cast<sockaddr *>(&address);
		socklen_t size = sizeof(address);
		EXPECT_EQ(bind(listener.get(), where, size), 0);
		EXPECT_EQ(listen(listener.get(), 1), 0);
		EXPECT_EQ(getsockname(listener.get(), where, &size), 0);
		sender = Fd(socket(AF_INET, SOCK_STREAM, 0));
		EXPECT_EQ(connect(sender.get(), where, size), 0);
		receiver_ = Fd(accept(listener.get(), nullptr, nullptr));
		const linger on{.l_onoff = 1, .l_linger = kLinger};
		EXPECT_EQ(setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &on, sizeof(on)), 0);
		const std::vector<std::byte> bytes(1 << 20);
		while (send(sender.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
		}
	}

	Fd sender;

private:
	Fd receiver_;
};

Fd connect_to(const std::string &path, int type)
{
	Fd fd(socket(AF_UNIX, type, 0));
	sockaddr_un address{};
	address.sun_family = AF_UNIX;
	path.copy(address.sun_path, sizeof(address.sun_path) - 1);
	EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
	return fd;
}

void send_bytes(const Fd &to, std::span<std::byte> bytes, std::span<const int> fds = {})
{
	iovec body{bytes.data(), bytes.size()};
	alignas(cmsghdr) std::array<std::byte, 1024> control{};
	msghdr message{};
	message.msg_iov = &body;
	message.msg_iovlen = 1;
	if (!fds.empty())
		attach_fds(message, control, fds);
	EXPECT_EQ(sendmsg(to.get(), &message, 0), static_cast<ssize_t>(bytes.size()));
}

struct Socket {
	const char *name;
	const char *suffix; /* of its path */
	int type;
};

class PeerFilesTest : public testing::TestWithParam<Socket> {
protected:
	PeerFilesTest() : path_(testing::TempDir() + "tern-files-" + std::to_string(getpid()))
	{
		EXPECT_EQ(server_.listen(path_ + ".stream"), "");
		EXPECT_EQ(server_.listen_for_shared(path_ + ".shared"), "");
		EXPECT_EQ(server_.listen_for_control(path_ + ".ctl"), "");
	}
	Fd connect() { return connect_to(path_ + GetParam().suffix, GetParam().type); }
	/** The switch does what there is to do, and has not waited for the file meanwhile. */
	void expect_steps_without_waiting()
	{
		const auto begin = Clock::now();
		for (int i = 0; i < 5; i++)
			server_.step(0);
		EXPECT_LT(Clock::now() - begin, std::chrono::seconds(kLinger / 2));
	}
	/** Whether the switch has closed its end of @socket. */
	static bool is_closed(const Fd &socket)
	{
		pollfd end{.fd = socket.get(), .events = 0, .revents = 0};
		return poll(&end, 1, 0) == 1 && end.revents & POLLHUP;
	}

	const std::string path_;
	Server server_;
	LingeringConnection connection_;
	std::array<std::byte, 8> bytes_{};
};

TEST_P(PeerFilesTest, TheSwitchDoesNotWaitForTheirEnd)
{
	const Fd client = connect();
	server_.step(0);
	send_bytes(client, bytes_, std::array{connection_.sender.get()});
	connection_.sender = Fd();
	expect_steps_without_waiting();
	EXPECT_TRUE(is_closed(client));
}

TEST_P(PeerFilesTest, OneThatTakesLongHoldsUpNoOther)
{
	int ends[2];
	ASSERT_EQ(pipe(ends), 0);
	const Fd reader(ends[0]);
	Fd writer(ends[1]);
	const Fd client = connect();
	server_.step(0);
	send_bytes(client, bytes_, std::array{connection_.sender.get(), writer.get()});
	connection_.sender = Fd();
	writer = Fd();
	expect_steps_without_waiting();
	pollfd end{.fd = reader.get(), .events = POLLIN, .revents = 0};
	EXPECT_EQ(poll(&end, 1, kLinger * 1000 / 2), 1);
}

/* The message has more descriptors than any message of the switch's protocols. */
TEST_P(PeerFilesTest, ManyInOneMessage)
{
	const Fd client = connect();
	server_.step(0);
	std::vector<int> fds(200, STDERR_FILENO);
	fds.push_back(connection_.sender.get());
	send_bytes(client, bytes_, fds);
	connection_.sender = Fd();
	expect_steps_without_waiting();
	EXPECT_TRUE(is_closed(client));
}

/* The switch disconnects the client for the first message, and never receives the second. */
TEST_P(PeerFilesTest, OnesThatAreNeverReceived)
{
	const Fd client = connect();
	server_.step(0);
	send_bytes(client, bytes_, std::array{STDERR_FILENO});
	send_bytes(client, bytes_, std::array{connection_.sender.get()});
	connection_.sender = Fd();
	expect_steps_without_waiting();
}

size_t entries_of(const char *directory)
{
	const std::filesystem::directory_iterator all(directory);
	return static_cast<size_t>(std::distance(begin(all), end(all)));
}

/* They get 64 threads at most. What has no files needs none. */
TEST_F(PeerFilesTest, MoreThanThereAreThreads)
{
	constexpr size_t kFiles = 70, kThreads = 64;
	const Fd client = connect_to(path_ + ".stream", SOCK_STREAM);
	server_.step(0);
	std::vector<LingeringConnection> files(kFiles);
	std::vector<int> fds;
	for (const auto &file : files)
		fds.push_back(file.sender.get());
	send_bytes(client, bytes_, fds);
	for (auto &file : files)
		file.sender = Fd();
	const size_t threads = entries_of("/proc/self/task");
	size_t open = entries_of("/proc/self/fd");
	expect_steps_without_waiting();
	EXPECT_TRUE(is_closed(client));
	EXPECT_LE(entries_of("/proc/self/task"), threads + kThreads);

	/* Each thread has begun to close a file, and the connection is closed. */
	const auto begin = Clock::now();
	while (entries_of("/proc/self/fd") > open + kFiles - kThreads - 1 &&
	       Clock::now() - begin < std::chrono::seconds(kLinger / 2))
		std::this_thread::yield();
	Fd another = connect_to(path_ + ".stream", SOCK_STREAM);
	server_.step(0);
	open = entries_of("/proc/self/fd");
	another = Fd();
	expect_steps_without_waiting();
	EXPECT_EQ(entries_of("/proc/self/fd"), open - 2);
}

INSTANTIATE_TEST_SUITE_P(All, PeerFilesTest,
                         testing::Values(Socket{"Stream", ".stream", SOCK_STREAM},
                                         Socket{"Shared", ".shared", SOCK_SEQPACKET},
                                         Socket{"Control", ".ctl", SOCK_STREAM}),
                         [](const auto &socket) { return socket.param.name; });

} // namespace
} // namespace tern::wire
