// SPDX-License-Identifier: GPL-2.0-or-later
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "qemu/wire/unix_socket.h"

namespace tern::wire {
namespace {

/* Returns the error, or 0. */
int connect_to(const std::string &path)
{
	const Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
	sockaddr_un address{};
	address.sun_family = AF_UNIX;
	path.copy(address.sun_path, sizeof(address.sun_path) - 1);
	const auto *generic = reinterpret_cast<const sockaddr *>(&address);
	return connect(fd.get(), generic, sizeof(address)) ? errno : 0;
}

class UnixListenerTest : public testing::Test {
protected:
	UnixListenerTest()
	        : folder_(testing::TempDir() + "tern-listener-" + std::to_string(getpid()))
	{
		std::filesystem::create_directory(folder_);
	}
	~UnixListenerTest() override { std::filesystem::remove_all(folder_); }

	std::string path(const std::string &name) const { return folder_ + "/" + name; }
	size_t files() const
	{
		const std::filesystem::directory_iterator entries(folder_);
		return static_cast<size_t>(std::distance(begin(entries), end(entries)));
	}

private:
	const std::string folder_;
};

/* A program that waits for the socket's file and then connects must not be refused. */
TEST_F(UnixListenerTest, ASocketThatIsThereIsListenedAt)
{
	constexpr int kRounds = 2000;
	std::atomic<int> connected = 0, refused = 0;
	std::thread client([&] {
		for (int i = 0; i < kRounds; i++) {
			int error;
			while ((error = connect_to(path(std::to_string(i)))) == ENOENT) {
			}
			refused += error == ECONNREFUSED;
			connected++;
		}
	});
	for (int i = 0; i < kRounds; i++) {
		UnixListener listener(SOCK_STREAM);
		EXPECT_EQ(listener.open(path(std::to_string(i))), "");
		while (connected <= i) {
		}
	}
	client.join();
	EXPECT_EQ(refused, 0);
	EXPECT_EQ(files(), 0u);
}

TEST_F(UnixListenerTest, ReplacesTheSocketOfAKilledProcess)
{
	const std::string old = path("old");
	{
		UnixListener listener(SOCK_STREAM);
		ASSERT_EQ(listener.open(path("socket")), "");
		std::filesystem::rename(path("socket"), old);
	}
	ASSERT_EQ(connect_to(old), ECONNREFUSED);

	UnixListener listener(SOCK_STREAM);
	EXPECT_EQ(listener.open(old), "");
	EXPECT_EQ(connect_to(old), 0);
}

TEST_F(UnixListenerTest, LeavesAListenerAlone)
{
	for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
		UnixListener first(type), second(SOCK_STREAM);
		ASSERT_EQ(first.open(path("socket")), "");
		EXPECT_NE(second.open(path("socket")).find("somebody listens"), std::string::npos);
	}
}

/* Somebody removed the socket of the first one, and another one has listened at its path since. */
TEST_F(UnixListenerTest, LeavesItsSuccessorsSocket)
{
	auto first = std::make_unique<UnixListener>(SOCK_STREAM);
	ASSERT_EQ(first->open(path("socket")), "");
	std::filesystem::remove(path("socket"));
	{
		UnixListener second(SOCK_STREAM);
		ASSERT_EQ(second.open(path("socket")), "");
		first.reset();
		EXPECT_EQ(connect_to(path("socket")), 0);
	}
	EXPECT_EQ(files(), 0u);
}

/* connect() tells the same of a file as of the socket of a killed process. */
TEST_F(UnixListenerTest, LeavesAFileAlone)
{
	std::ofstream(path("file")) << "content";
	UnixListener listener(SOCK_STREAM);
	EXPECT_EQ(listener.open(path("file")), path("file") + ": is not a socket");
	EXPECT_EQ(std::filesystem::file_size(path("file")), 7u);
}

TEST_F(UnixListenerTest, RefusesAPathThatIsTooLong)
{
	UnixListener listener(SOCK_STREAM);
	EXPECT_NE(listener.open(path(std::string(107, 'x'))).find("106 bytes"), std::string::npos);
	EXPECT_NE(listener.open("").find("106 bytes"), std::string::npos);
	EXPECT_EQ(files(), 0u);
}

} // namespace
} // namespace tern::wire
