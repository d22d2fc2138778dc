// SPDX-License-Identifier: GPL-2.0-or-later
/* Descriptors that are on their way from one process to another. The kernel counts them for each
 * user, against RLIMIT_NOFILE of the process that sends more, so hosts can use up the switch's. */
#include <array>
#include <cerrno>
#include <functional>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "tests/support/no_descriptors.h"
#include "tests/unit/shm/shared_wire_fixture.h"

namespace tern::shm {
namespace {

constexpr rlim_t kLimit = 256;

/** Uses up the descriptors that a user may have in flight. One message has room when @spare others
 * descriptors have been sent: the kernel looks at what is there before it. */
class InFlight {
public:
	explicit InFlight(size_t spare)
	{
		int ends[2];
		EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		from_ = Fd(ends[0]);
		to_ = Fd(ends[1]);
		while (send_one())
			;
		EXPECT_EQ(errno, ETOOMANYREFS);
		std::vector<Fd> fds;
		std::byte byte;
		for (size_t i = 0; i <= spare; i++)
			EXPECT_EQ(tern::receive_some(to_, std::span(&byte, 1), fds).size, 1);
	}

private:
	bool send_one()
	{
		std::byte byte{};
		iovec body{&byte, 1};
		alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
		msghdr message{};
		message.msg_iov = &body;
		message.msg_iovlen = 1;
		attach_fds(message, control, std::array{STDERR_FILENO});
		return sendmsg(from_.get(), &message, MSG_DONTWAIT) == 1;
	}

	Fd from_;
	Fd to_;
};

class DescriptorsTest : public SharedWireTest {
protected:
	/* Runs @test in a thread without privileges, with which there would be no limit. The system
	 * call changes this thread alone, other than setresuid(). */
	void run_unprivileged(const std::function<void()> &test)
	{
		rlimit before{};
		ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
		const rlimit limit{.rlim_cur = kLimit, .rlim_max = before.rlim_max};
		ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
		std::thread([&] {
			/* The kernel limits the descriptors in flight of each user. Each run of
			 * this test has a user ID of its own, so that concurrent runs do not share
			 * a limit. */
			const auto user = static_cast<uid_t>(40'000 + getpid() % 20'000);
			EXPECT_TRUE(geteuid() || syscall(SYS_setresuid, user, user, user) == 0);
			test();
		}).join();
		EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	}
	std::string ports()
	{
		const std::string told = server->execute("ports");
		return told.substr(0, told.find(';'));
	}
};

/* The new host has room for its own rings. Those for direct links find none. */
TEST_F(DescriptorsTest, AHostWithoutADirectLinkStaysConnected)
{
	connect_hosts(2);
	const Fd third = stranger();
	ASSERT_TRUE(send_message(third, {}));
	run_unprivileged([&] {
		const InFlight full(0);
		step();
		EXPECT_EQ(ports(), "ok 3");
		Message message;
		std::vector<Fd> fds;
		EXPECT_EQ(receive_message(third, message, fds), Received::Message);
		EXPECT_EQ(message.kind, Message::Kind::Welcome);
		EXPECT_EQ(fds.size(), kWelcomeFds);
		EXPECT_EQ(receive_message(third, message, fds), Received::Nothing);
		settle();
		EXPECT_TRUE(nodes[0].wire.up());
		EXPECT_TRUE(nodes[1].wire.up());
	});
}

/* The limit admits the message for the new host, but not the one for the other host. */
TEST_F(DescriptorsTest, ADirectLinkHasTwoEndsOrNone)
{
	connect_hosts(1);
	const Fd second = stranger();
	ASSERT_TRUE(send_message(second, {}));
	run_unprivileged([&] {
		const InFlight full(kWelcomeFds);
		step();
		EXPECT_EQ(ports(), "ok 2");
		std::vector<Message::Kind> kinds;
		Message message;
		std::vector<Fd> fds;
		while (receive_message(second, message, fds) == Received::Message)
			kinds.push_back(message.kind);
		using Kind = Message::Kind;
		EXPECT_EQ(kinds, (std::vector{Kind::Welcome, Kind::Peer, Kind::Gone}));
		settle();
		EXPECT_TRUE(nodes[0].wire.up());
	});
}

TEST_F(DescriptorsTest, AHostThatCannotMakeItsSpillSaysWhy)
{
	const EventPoll poll;
	std::optional<SharedWire> wire;
	{
		const test::NoDescriptors none;
		wire.emplace(path, poll, 0, 0);
	}
	EXPECT_EQ(wire->connect(), path + ": no memory to share: Too many open files");
}

TEST_F(DescriptorsTest, ASwitchThatCannotMakeRingsSaysWhy)
{
	const Fd host = stranger();
	step();
	ASSERT_TRUE(send_message(host, {}));
	{
		const test::NoDescriptors none;
		step();
	}
	Message message;
	std::vector<Fd> fds;
	ASSERT_EQ(receive_message(host, message, fds), Received::Message);
	EXPECT_STREQ(message.reason, "no memory for rings: Too many open files");
}

/** A switch whose bells are not what they should be. */
class SwitchWithBadBells {
public:
	explicit SwitchWithBadBells(const std::string &path)
	{
		EXPECT_EQ(listener_.open(path), "");
	}
	void accept()
	{
		while (!(host_ = listener_.accept()))
			std::this_thread::yield();
	}
	/* @listener: what the host is to watch. */
	void send(const Message &message, const Fd &listener, const Fd &in, const Fd &out)
	{
		std::vector<int> fds{listener.get(), bells_.bell.fd(), in.get(), out.get()};
		if (message.kind == Message::Kind::Welcome)
			fds.insert(fds.begin(), page_.get());
		EXPECT_TRUE(send_message(host_, message, fds));
	}
	const Fd &good() const { return bells_.listener; }
	const Fd &bad() const { return page_; }

private:
	wire::UnixListener listener_{SOCK_SEQPACKET};
	Fd host_;
	const Fd page_ = make_segment("page", sizeof(AddressPage));
	const BellPair bells_ = BellPair::make();
};

bool is_closed(const Fd &ring)
{
	Mapping memory;
	EXPECT_EQ(memory.map(ring, sizeof(RingHeader), Mapping::Access::Read), "");
	return reinterpret_cast<const RingHeader *>(memory.bytes().data())->closed;
}

/* A host that does not hear the bell would sleep while frames for it wait. */
TEST_F(DescriptorsTest, AHostDoesNotUseALinkWhoseBellItCannotWatch)
{
	server.reset();
	SwitchWithBadBells bad(path);
	const Fd in = RingEnd::make(64 << 10), out = RingEnd::make(64 << 10);
	Node node(path);
	const auto connect = [&](const Fd &listener) {
		auto error = std::async(std::launch::async, [&] { return node.wire.connect(); });
		bad.accept();
		bad.send({.kind = Message::Kind::Welcome}, listener, in, out);
		return error.get();
	};
	EXPECT_EQ(connect(bad.bad()), path + ": a bell cannot be watched: Operation not permitted");
	EXPECT_FALSE(node.wire.up());
	EXPECT_EQ(connect(bad.good()), "");

	const Fd from_peer = RingEnd::make(64 << 10), to_peer = RingEnd::make(64 << 10);
	bad.send({.kind = Message::Kind::Peer, .id = 1}, bad.bad(), from_peer, to_peer);
	node.receive();
	EXPECT_TRUE(node.wire.up());
	EXPECT_TRUE(is_closed(from_peer));
	EXPECT_TRUE(is_closed(to_peer));
}

} // namespace
} // namespace tern::shm
