// SPDX-License-Identifier: GPL-2.0-or-later
/* The switch with real sockets, in one thread: each step is taken by hand. */
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "qemu/wire/server.h"
#include "tests/support/no_descriptors.h"
#include "tests/unit/wire/frames.h"

namespace tern::wire {
namespace {

class Client {
public:
	explicit Client(const std::string &path)
	        : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0))
	{
		sockaddr_un address{};
		address.sun_family = AF_UNIX;
		path.copy(address.sun_path, sizeof(address.sun_path) - 1);
		EXPECT_EQ(
		        connect(fd_.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)),
		        0);
	}

	/* How much the socket took. */
	size_t send(const Bytes &bytes)
	{
		const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
		return sent < 0 ? 0 : static_cast<size_t>(sent);
	}
	void receive()
	{
		while (receive_once())
			;
	}
	/* Returns whether there was anything. */
	bool receive_once()
	{
		const auto room = reader_.room();
		const ssize_t size = recv(fd_.get(), room.data(), room.size(), 0);
		if (size <= 0) {
			closed |= size == 0 || errno == ECONNRESET;
			return false;
		}
		reader_.filled(static_cast<size_t>(size));
		while (const auto frame = reader_.next())
			tags.push_back(tag_of(*frame));
		return true;
	}
	std::string receive_line()
	{
		char line[4096];
		const ssize_t size = recv(fd_.get(), line, sizeof(line), 0);
		return size < 0 ? "" : std::string(line, static_cast<size_t>(size));
	}

	std::vector<uint32_t> tags;
	bool closed = false;

private:
	Fd fd_;
	FrameReader reader_;
};

class ServerTest : public testing::Test {
protected:
	ServerTest() : path(testing::TempDir() + "tern-switch-" + std::to_string(getpid()))
	{
		EXPECT_EQ(server.listen(path), "");
		EXPECT_EQ(server.listen_for_control(path + ".ctl"), "");
	}

	void step(int times = 1)
	{
		for (int i = 0; i < times; i++)
			server.step(0);
	}

	const std::string path;
	Server server;
};

TEST_F(ServerTest, ConnectsEightHosts)
{
	std::vector<Client> hosts;
	for (int i = 0; i < 8; i++)
		hosts.emplace_back(path);
	step();
	hosts[0].send(on_stream(frame(kBroadcast, 0, 7)));
	step(2);
	for (int i = 1; i < 8; i++) {
		hosts[i].receive();
		EXPECT_EQ(hosts[i].tags, std::vector<uint32_t>{7});
	}
	hosts[5].send(on_stream(frame(0, 5, 8)));
	step(2);
	hosts[0].receive();
	EXPECT_EQ(hosts[0].tags, std::vector<uint32_t>{8});
	hosts[1].receive();
	EXPECT_EQ(hosts[1].tags.size(), 1u);
}

/* A process that connects in a loop would otherwise keep a step running. */
TEST_F(ServerTest, AcceptsEightConnectionsAStep)
{
	std::vector<Client> hosts;
	for (int i = 0; i < 20; i++)
		hosts.emplace_back(path);
	std::vector<std::string> counts;
	for (int i = 0; i < 4; i++) {
		step();
		const std::string told = server.execute("ports");
		counts.push_back(told.substr(0, told.find(';')));
	}
	EXPECT_EQ(counts, (std::vector<std::string>{"ok 8", "ok 16", "ok 20", "ok 20"}));
}

/* Otherwise thousands of one host's frames would hold up a frame of another. A step has two turns:
 * one for what is read, one for what was left. */
TEST_F(ServerTest, AHostForwards64FramesATurn)
{
	Client a(path), b(path);
	step();
	Bytes stream;
	for (uint32_t i = 0; i < 300; i++) {
		const Bytes bytes = on_stream(frame(kBroadcast, 1, i));
		stream.insert(stream.end(), bytes.begin(), bytes.end());
	}
	ASSERT_EQ(a.send(stream), stream.size());
	for (const size_t expected : {128u, 192u, 256u, 300u, 300u}) {
		step();
		b.receive();
		EXPECT_EQ(b.tags.size(), expected);
	}
	for (uint32_t i = 0; i < 300; i++)
		ASSERT_EQ(b.tags[i], i);
}

TEST_F(ServerTest, LosesNothingWhenADestinationIsSlow)
{
	Client fast(path), slow(path);
	step();
	slow.send(on_stream(frame(kBroadcast, 2)));
	step();

	/* Much more than queue and sockets hold, before the slow one reads a byte. */
	constexpr uint32_t kFrames = 2000;
	Bytes stream;
	for (uint32_t i = 0; i < kFrames; i++) {
		const Bytes bytes = on_stream(frame(2, 1, i, 9014));
		stream.insert(stream.end(), bytes.begin(), bytes.end());
	}
	const auto push = [&] {
		const size_t sent = fast.send(stream);
		stream.erase(stream.begin(), stream.begin() + static_cast<ptrdiff_t>(sent));
		step();
		return sent;
	};
	while (push() != 0)
		;
	EXPECT_FALSE(stream.empty()) << "nothing held the sender back";

	for (int i = 0; i < 10000 && slow.tags.size() < kFrames; i++) {
		slow.receive();
		push();
	}
	ASSERT_EQ(slow.tags.size(), kFrames);
	for (uint32_t i = 0; i < kFrames; i++)
		ASSERT_EQ(slow.tags[i], i);
}

/* The value of @name that `ports` has for port @id. */
size_t port_value(Server &server, unsigned id, const std::string &name)
{
	const std::string told = server.execute("ports");
	const size_t port = told.find("port=" + std::to_string(id));
	const size_t at = told.find(' ' + name + '=', port);
	return std::stoul(told.substr(at + name.size() + 2));
}

TEST_F(ServerTest, AHostLeavesTheRoomForWhichAnotherWaits)
{
	constexpr size_t kHighWater = 512 << 10;
	Client waiting(path), steady(path), slow(path);
	step();
	slow.send(on_stream(frame(kBroadcast, 3)));
	step();
	const Bytes bytes = on_stream(frame(3, 1, 0, 9014));
	while (port_value(server, 2, "queued") < kHighWater) {
		ASSERT_EQ(waiting.send(bytes), bytes.size());
		step();
	}
	while (port_value(server, 2, "queued") >= kHighWater) {
		slow.receive_once();
		step();
	}
	ASSERT_GT(port_value(server, 2, "queued"), kHighWater / 2);
	const size_t received = port_value(server, 0, "rx");
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(waiting.send(bytes), bytes.size());
		steady.send(on_stream(frame(3, 2)));
		step();
	}
	EXPECT_EQ(port_value(server, 0, "rx"), received);
	EXPECT_EQ(port_value(server, 1, "rx"), 1u);
	while (port_value(server, 2, "queued")) {
		slow.receive();
		step();
	}
	EXPECT_EQ(port_value(server, 0, "rx"), received + 10);
	EXPECT_EQ(port_value(server, 1, "rx"), 10u);
}

TEST_F(ServerTest, TwoThatFloodEachOtherDoNotDeadlock)
{
	Client a(path), b(path);
	step();
	a.send(on_stream(frame(kBroadcast, 1)));
	b.send(on_stream(frame(kBroadcast, 2)));
	step(2);
	const Bytes to_a = on_stream(frame(1, 2, 1, 9014)), to_b = on_stream(frame(2, 1, 1, 9014));
	Bytes rest_a, rest_b;
	const auto push = [](Client &client, Bytes &rest, const Bytes &bytes) {
		if (rest.empty())
			rest = bytes;
		const size_t sent = client.send(rest);
		rest.erase(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(sent));
		return sent != 0;
	};
	/* Neither reads until neither can write. */
	for (bool progress = true; progress;) {
		progress = push(a, rest_a, to_b);
		progress |= push(b, rest_b, to_a);
		step();
	}
	for (int round = 0; round < 100; round++) {
		a.receive();
		b.receive();
		step(2);
	}
	EXPECT_TRUE(push(a, rest_a, to_b));
	EXPECT_TRUE(push(b, rest_b, to_a));
	EXPECT_GT(a.tags.size(), 50u);
	EXPECT_GT(b.tags.size(), 50u);
}

TEST_F(ServerTest, BadLengthClosesThatPortAlone)
{
	Client good(path), bad(path), other(path);
	step();
	bad.send(on_stream(frame(kBroadcast, 3, 1)));
	bad.send(Bytes(8, std::byte{0xff}));
	step(3);
	bad.receive();
	EXPECT_TRUE(bad.closed);
	good.send(on_stream(frame(kBroadcast, 1, 2)));
	step(2);
	other.receive();
	EXPECT_EQ(other.tags, (std::vector<uint32_t>{1, 2}));
	EXPECT_FALSE(other.closed);
}

TEST_F(ServerTest, AHostThatLeavesUnblocksTheOthers)
{
	Client a(path), b(path);
	auto stuck = std::make_unique<Client>(path);
	step();
	stuck->send(on_stream(frame(kBroadcast, 3)));
	b.send(on_stream(frame(kBroadcast, 2)));
	step(2);
	b.receive();
	b.tags.clear();
	const Bytes to_stuck = on_stream(frame(3, 1, 0, 9014));
	while (a.send(to_stuck) == to_stuck.size())
		step();
	stuck.reset();
	step(10);
	/* Whatever part of the last frame went, its rest has to follow: a new host is simpler. */
	Client c(path);
	step();
	c.send(on_stream(frame(2, 4, 9)));
	step(2);
	b.receive();
	ASSERT_FALSE(b.tags.empty()); /* some that were for the one that left are flooded now */
	EXPECT_EQ(b.tags.back(), 9u);
	EXPECT_NE(a.send(to_stuck), 0u);
}

TEST_F(ServerTest, AnswersOneLineACommand)
{
	Client control(path + ".ctl");
	const auto say = [&](std::string text) {
		Bytes bytes(text.size());
		std::memcpy(bytes.data(), text.data(), text.size());
		control.send(bytes);
		step(2);
		return control.receive_line();
	};
	step();
	EXPECT_EQ(say("loss 1\nloss x\n"), "ok\nerror a percentage from 0 to 100 is needed\n");
	EXPECT_EQ(say("po"), "");
	EXPECT_EQ(say("rts\n"), "ok 0\n");
	Client host(path);
	step();
	host.send(on_stream(frame(kBroadcast, 5)));
	step();
	EXPECT_EQ(say("ports\n"), "ok 1; port=0 rx=1 tx=0 dropped=0 queued=0 direct=0 "
	                          "macs=00:00:00:00:00:05\n");
}

/* Its socket holds less than the replies to all of its commands. */
TEST_F(ServerTest, AnswersAClientThatReadsLate)
{
	constexpr size_t kCommands = 100000;
	Client control(path + ".ctl");
	const std::string command = "ports\n", reply = "ok 0\n";
	std::string commands, replies;
	for (size_t i = 0; i < kCommands; i++)
		commands += command;
	Bytes bytes(commands.size());
	std::memcpy(bytes.data(), commands.data(), commands.size());
	size_t sent = 0;
	for (int i = 0; i < 1000; i++) {
		sent += control.send({bytes.begin() + static_cast<ptrdiff_t>(sent), bytes.end()});
		step();
	}
	EXPECT_LT(sent, bytes.size());
	for (int i = 0; i < 10000 && replies.size() < kCommands * reply.size(); i++) {
		sent += control.send({bytes.begin() + static_cast<ptrdiff_t>(sent), bytes.end()});
		step();
		for (auto more = control.receive_line(); !more.empty();
		     more = control.receive_line())
			replies += more;
	}
	EXPECT_EQ(replies.size(), kCommands * reply.size());
}

/* The listener stays readable while it has a connection that cannot be accepted, but the switch
 * must not use a processor for that. */
TEST_F(ServerTest, WaitsWhenThereAreNoDescriptorsForAConnection)
{
	using namespace std::chrono_literals;
	using Clock = std::chrono::steady_clock;
	Client host(path);
	testing::internal::CaptureStderr();
	{
		const test::NoDescriptors none;
		const auto begin = Clock::now();
		step();
		server.step(50);
		EXPECT_GE(Clock::now() - begin, 40ms);
		for (int i = 0; i < 5; i++)
			server.step();
		EXPECT_GE(Clock::now() - begin, 150ms);
	}
	const std::string told = testing::internal::GetCapturedStderr();
	EXPECT_EQ(told, "tern-switch: cannot accept connections: Too many open files\n");
	for (int i = 0; i < 3; i++)
		server.step(200);
	EXPECT_TRUE(server.execute("ports").starts_with("ok 1"));
}

/* The descriptors of a host that leaves are for the next one, which need not wait. */
TEST_F(ServerTest, AcceptsAgainWhenAHostHasLeft)
{
	auto first = std::make_unique<Client>(path);
	step();
	Client second(path);
	testing::internal::CaptureStderr();
	{
		const test::NoDescriptors none;
		step();
	}
	first.reset();
	step(2);
	EXPECT_EQ(port_value(server, 0, "rx"), 0u);
	EXPECT_TRUE(server.execute("ports").starts_with("ok 1"));
	second.send(on_stream(frame(kBroadcast, 2)));
	step();
	EXPECT_EQ(port_value(server, 0, "rx"), 1u);
	testing::internal::GetCapturedStderr();
}

TEST_F(ServerTest, RefusesASecondSwitchAtThePath)
{
	Server second;
	EXPECT_NE(second.listen(path), "");
}

} // namespace
} // namespace tern::wire
