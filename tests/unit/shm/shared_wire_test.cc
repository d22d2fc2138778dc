// SPDX-License-Identifier: GPL-2.0-or-later
/* Hosts and switch with real sockets and memory; every step is taken by hand. */
#include <algorithm>
#include <barrier>
#include <deque>
#include <fcntl.h>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>

#include "qemu/shm/shared_wire.h"
#include "qemu/wire/server.h"
#include "tests/unit/wire/frames.h"

namespace tern::shm {
namespace {

using wire::Bytes;
using wire::frame;
using wire::kBroadcast;
using wire::qp_of;
using wire::roce;
using wire::tag_of;

constexpr size_t kRamSize = 1 << 20;
constexpr uint64_t kSecond = 1'000'000'000;

/** A host: its end of the wire, RAM, and what came. */
class Node final : private SharedWire::Sink {
public:
	explicit Node(const std::string &path, uint64_t card = 0, uint32_t lane = 0)
	        : wire(path, poll, card, lane)
	{
		ram_fd = make_segment("ram", kRamSize);
		EXPECT_EQ(ram.map(ram_fd, kRamSize, Mapping::Access::ReadWrite), "");
		EXPECT_TRUE(wire.share(ram_fd.get(), kRamSize));
	}

	void receive()
	{
		wire.listen(now);
		wire.attend(now);
		while (wire.receive(8, *this))
			;
	}
	std::vector<uint32_t> tags()
	{
		std::vector<uint32_t> tags;
		for (const Bytes &bytes : frames)
			tags.push_back(tag_of(bytes));
		return tags;
	}

	const EventPoll poll;
	SharedWire wire;
	uint64_t now = 1;
	Fd ram_fd;
	Mapping ram;
	std::vector<Bytes> frames;
	/* head and payload, joined */
	std::vector<Bytes> loans;
	std::vector<uint32_t> segments;
	std::function<void()> during_loan;

private:
	void frame(std::span<const std::byte> bytes) override
	{
		frames.emplace_back(bytes.begin(), bytes.end());
	}
	void lent(std::span<const std::byte> head,
	          std::span<const std::span<const std::byte>> payload, uint32_t segment) override
	{
		segments.push_back(segment);
		if (during_loan)
			during_loan();
		Bytes all(head.begin(), head.end());
		for (const auto &part : payload)
			all.insert(all.end(), part.begin(), part.end());
		loans.push_back(std::move(all));
	}
};

class SharedWireTest : public testing::Test {
protected:
	SharedWireTest() : path(testing::TempDir() + "tern-shared-" + std::to_string(getpid()))
	{
		start_switch();
	}

	void start_switch()
	{
		server = std::make_unique<wire::Server>();
		EXPECT_EQ(server->listen_for_shared(path), "");
		EXPECT_EQ(server->listen(path + ".stream"), "");
	}
	void step(int times = 4)
	{
		for (Node &node : nodes)
			node.wire.announce();
		for (int i = 0; i < times; i++)
			server->step(0);
	}
	std::string connect(Node &node)
	{
		auto error = std::async(std::launch::async, [&] { return node.wire.connect(); });
		while (error.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
			server->step(1);
		return error.get();
	}
	void connect_lane(uint64_t card, uint32_t lane)
	{
		ASSERT_EQ(connect(nodes.emplace_back(path, card, lane)), "");
	}
	/* @count hosts that know one another: host i has address i + 1. */
	void connect_hosts(unsigned count)
	{
		for (unsigned i = 0; i < count; i++)
			connect_lane(0, 0);
		for (unsigned i = 0; i < count; i++)
			nodes[i].wire.send(frame(kBroadcast, static_cast<uint8_t>(i + 1)));
		settle();
		for (Node &node : nodes)
			node.frames.clear();
	}
	void settle()
	{
		step();
		for (Node &node : nodes)
			node.receive();
	}
	void settle_without_switch()
	{
		for (Node &node : nodes)
			node.receive();
	}
	/* A field of what a command tells. */
	uint64_t told(const char *command, const std::string &field)
	{
		const std::string answer = server->execute(command);
		return std::stoull(
		        answer.substr(answer.find(' ' + field + '=') + field.size() + 2));
	}
	uint64_t frames_through_switch() { return told("stats", "frames"); }

	/* Speaks with the switch without being a host of ours. */
	Fd stranger()
	{
		Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
		sockaddr_un address{};
		address.sun_family = AF_UNIX;
		path.copy(address.sun_path, sizeof(address.sun_path) - 1);
		EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr *>(&address),
		                    sizeof(address)),
		          0);
		return fd;
	}
	Message answer(const Message &hello, std::span<const int> fds = {})
	{
		const Fd fd = stranger();
		EXPECT_TRUE(send_message(fd, hello, fds));
		step();
		Message message;
		std::vector<Fd> got;
		EXPECT_EQ(receive_message(fd, message, got), Received::Message);
		return message;
	}

	const std::string path;
	std::unique_ptr<wire::Server> server;
	std::deque<Node> nodes;
};

using Tags = std::vector<uint32_t>;

TEST_F(SharedWireTest, FirstFramesGoThroughTheSwitchAndOthersDirectly)
{
	connect_hosts(2);
	const uint64_t before = frames_through_switch();
	EXPECT_EQ(before, 2u);
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 1, 7)));
	nodes[1].receive();
	EXPECT_EQ(nodes[1].tags(), Tags{7});
	EXPECT_TRUE(nodes[1].wire.send(frame(1, 2, 8)));
	nodes[0].receive();
	EXPECT_EQ(nodes[0].tags(), Tags{8});
	step();
	EXPECT_EQ(frames_through_switch(), before);
}

TEST_F(SharedWireTest, TheSecondOfTwoHearsWhereTheFirstWasWoken)
{
	connect_hosts(2);
	EXPECT_EQ(nodes[0].wire.hosts(), 2u);
	nodes[0].wire.sleeps(5);
	nodes[1].wire.sleeps(6);
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 1, 7)));
	EXPECT_TRUE(nodes[1].wire.send(frame(1, 2, 8)));
	EXPECT_EQ(nodes[0].wire.announce(), std::nullopt);
	EXPECT_EQ(nodes[1].wire.announce(), 5u);
	EXPECT_TRUE(nodes[1].wire.send(frame(1, 2, 9)));
	EXPECT_EQ(nodes[1].wire.announce(), std::nullopt) << "it has been woken";
	nodes[1].wire.sleeps(6);
	EXPECT_TRUE(nodes[1].wire.send(frame(kBroadcast, 2, 9)));
	EXPECT_EQ(nodes[1].wire.announce(), std::nullopt) << "to the switch";
}

TEST_F(SharedWireTest, WhatTheSwitchHasToSeeGoesThere)
{
	connect_hosts(3);
	EXPECT_TRUE(nodes[0].wire.send(frame(kBroadcast, 1, 1)));
	EXPECT_TRUE(nodes[0].wire.send(frame(9, 1, 2)));  /* unknown */
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 55, 3))); /* from one that is to be learned */
	nodes[1].receive();
	EXPECT_EQ(nodes[1].tags(), Tags{});
	settle();
	EXPECT_EQ(nodes[1].tags(), (Tags{1, 2, 3}));
	EXPECT_EQ(nodes[2].tags(), (Tags{1, 2}));
	EXPECT_TRUE(nodes[2].wire.send(frame(55, 3, 4)));
	nodes[0].receive();
	EXPECT_EQ(nodes[0].tags(), Tags{4});
}

TEST_F(SharedWireTest, FaultsAndCapturesSeeEveryFrame)
{
	connect_hosts(2);
	const RamRange range{0, 10, 0};
	for (const char *command : {"loss 100", "dup 100"}) {
		EXPECT_EQ(server->execute(command), "ok");
		EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0),
		          Wire::Lend::Refused);
		nodes[0].wire.send(frame(2, 1, 1));
		settle();
	}
	EXPECT_EQ(nodes[1].tags(), Tags{});
	EXPECT_EQ(server->execute("loss 0"), "ok");
	nodes[0].wire.send(frame(2, 1, 2));
	settle();
	EXPECT_EQ(nodes[1].tags(), (Tags{2, 2}));
	EXPECT_EQ(server->execute("dup 0"), "ok");

	const std::string file = path + ".pcap";
	EXPECT_EQ(server->execute("capture " + file), "ok");
	nodes[0].wire.send(frame(2, 1, 3));
	settle();
	EXPECT_EQ(server->execute("capture-stop"), "ok 1 frames");
	unlink(file.c_str());
	nodes[0].wire.send(frame(2, 1, 4));
	nodes[1].receive();
	EXPECT_EQ(nodes[1].tags(), (Tags{2, 2, 3, 4}));
}

TEST_F(SharedWireTest, PayloadIsReadWhereItLies)
{
	connect_hosts(2);
	for (size_t i = 0; i < kRamSize; i++)
		nodes[0].ram.bytes()[i] = static_cast<std::byte>(i * 7);
	const RamRange ranges[] = {{0, 100, 4096}, {0, 1, kRamSize - 1}, {0, 0, kRamSize}};
	const Bytes head = frame(2, 1, 5, 70);
	EXPECT_EQ(nodes[0].wire.lend(head, ranges, 0), Wire::Lend::Done);
	nodes[0].ram.bytes()[4096] = std::byte{99};
	nodes[1].receive();
	Bytes expected = head;
	const auto ram = nodes[0].ram.bytes();
	expected.insert(expected.end(), ram.begin() + 4096, ram.begin() + 4196);
	expected.push_back(ram[kRamSize - 1]);
	ASSERT_EQ(nodes[1].loans.size(), 1u);
	EXPECT_EQ(nodes[1].loans[0], expected);
}

/* Without payload elsewhere there is nothing to take back. */
TEST_F(SharedWireTest, Bare)
{
	connect_hosts(2);
	const Bytes bytes = frame(2, 1, 5, 9000);
	EXPECT_EQ(nodes[0].wire.lend(bytes, {}, 0), Wire::Lend::Done);
	nodes[0].wire.recall();
	nodes[1].receive();
	ASSERT_EQ(nodes[1].loans.size(), 1u);
	EXPECT_EQ(nodes[1].loans[0], bytes);
	EXPECT_EQ(nodes[0].wire.lend(frame(9, 1), {}, 0), Wire::Lend::Refused);
	EXPECT_EQ(nodes[0].wire.lend(Bytes(kMaxEntry + 1, bytes[5]), {}, 0), Wire::Lend::Refused);
}

TEST_F(SharedWireTest, Bursts)
{
	connect_hosts(2);
	const RamRange ranges[] = {{0, 4097, 4096}, {0, kMaxPayload - 4097, 16384}};
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), ranges, 1024), Wire::Lend::Done);
	/* The wire carries it; whether it is one the card judges. */
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(ranges).first(1), ~0u),
	          Wire::Lend::Done);
	nodes[1].receive();
	ASSERT_EQ(nodes[1].loans.size(), 2u);
	EXPECT_EQ(nodes[1].loans[0].size(), frame(2, 1).size() + kMaxPayload);
	EXPECT_EQ(nodes[1].segments, (std::vector<uint32_t>{1024, ~0u}));
}

TEST_F(SharedWireTest, TheSwitchKnowsHowManyFramesPassItBy)
{
	connect_hosts(2);
	const RamRange ranges[] = {{0, 4097, 4096}, {0, 4096, 16384}};
	EXPECT_EQ(told("stats", "direct"), 0u);
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 1)));
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), {}, 0), Wire::Lend::Done);
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), ranges, 0), Wire::Lend::Done);
	EXPECT_EQ(told("stats", "direct"), 3u);
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), ranges, 1024), Wire::Lend::Done);
	EXPECT_EQ(nodes[1].wire.lend(frame(1, 2), {}, 0), Wire::Lend::Done);
	EXPECT_TRUE(nodes[0].wire.send(frame(9, 1))) << "through it";
	EXPECT_EQ(told("stats", "direct"), 3u + 9 + 1);
	EXPECT_EQ(told("ports", "direct"), 3u + 9);
	nodes.pop_front();
	step();
	EXPECT_EQ(told("stats", "direct"), 3u + 9 + 1);
	EXPECT_EQ(told("ports", "direct"), 1u);
}

TEST_F(SharedWireTest, WhatIsRecalledIsNotRead)
{
	connect_hosts(2);
	const RamRange range{0, 10, 0};
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0), Wire::Lend::Done);
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 1, 6)));
	nodes[0].wire.recall();
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0), Wire::Lend::Done);
	nodes[1].receive();
	EXPECT_EQ(nodes[1].loans.size(), 1u);
	EXPECT_EQ(nodes[1].tags(), Tags{6});
}

TEST_F(SharedWireTest, WhoKeepsALoanTooLongIsCutOff)
{
	connect_hosts(2);
	const RamRange range{0, 10, 0};
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0), Wire::Lend::Done);
	nodes[1].during_loan = [&] { nodes[0].wire.recall(); };
	nodes[1].receive();
	/* From then on through the switch, both ways. */
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0), Wire::Lend::Refused);
	nodes[1].receive();
	EXPECT_EQ(nodes[1].wire.lend(frame(1, 2), std::span(&range, 1), 0), Wire::Lend::Refused);
	nodes[0].wire.send(frame(2, 1, 6));
	nodes[1].wire.send(frame(1, 2, 7));
	settle();
	EXPECT_EQ(nodes[1].tags(), Tags{6});
	EXPECT_EQ(nodes[0].tags(), Tags{7});
}

/* It may just have been stopped. */
TEST_F(SharedWireTest, WhoWasLateIsTrustedAgainLaterEachTime)
{
	connect_hosts(3);
	const RamRange range{0, 10, 0};
	const auto lend = [&](unsigned from, uint8_t to) {
		return nodes[from].wire.lend(frame(to, static_cast<uint8_t>(from + 1)),
		                             std::span(&range, 1), 0);
	};
	uint64_t now = kSecond;
	const auto attend = [&](uint64_t until) {
		nodes[0].now = now = until;
		nodes[0].receive();
		settle();
	};
	for (const uint64_t wait : {1, 2, 4}) {
		SCOPED_TRACE(wait);
		EXPECT_EQ(lend(0, 2), Wire::Lend::Done);
		nodes[1].during_loan = [&] { nodes[0].wire.recall(); };
		nodes[1].receive();
		nodes[1].during_loan = nullptr;
		attend(now);
		EXPECT_EQ(nodes[0].wire.next_deadline(), now + wait * kSecond);
		attend(now + wait * kSecond - 1);
		EXPECT_EQ(lend(0, 2), Wire::Lend::Refused);
		EXPECT_EQ(lend(1, 1), Wire::Lend::Refused);
		attend(now + 1);
		EXPECT_EQ(lend(0, 2), Wire::Lend::Done);
		EXPECT_EQ(lend(1, 1), Wire::Lend::Done);
		EXPECT_EQ(lend(0, 3), Wire::Lend::Done) << "as all the time";
		nodes[1].loans.clear();
		settle();
		EXPECT_EQ(nodes[1].loans.size(), 1u);
		/* What was due has come. */
		attend(now + 1000 * kSecond);
		EXPECT_EQ(nodes[0].wire.next_deadline(), std::nullopt);
	}
}

/* The switch was busy, or there was no memory for rings. */
TEST_F(SharedWireTest, ARenewalThatDoesNotComeIsAskedForAgain)
{
	connect_hosts(2);
	const RamRange range{0, 10, 0};
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0), Wire::Lend::Done);
	nodes[1].during_loan = [&] { nodes[0].wire.recall(); };
	nodes[1].receive();
	uint64_t now = 1;
	nodes[0].wire.attend(now);
	for (int i = 0; i < 9; i++) {
		now += kSecond;
		EXPECT_EQ(nodes[0].wire.next_deadline(), now);
		nodes[0].wire.attend(now);
	}
	/* Of so many only one is granted. */
	nodes[0].now = now;
	settle();
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0), Wire::Lend::Done);
	step(20);
	nodes[1].during_loan = nullptr;
	nodes[1].receive();
	EXPECT_EQ(nodes[1].loans.size(), 2u);
}

/* Each wants back what the other is just reading. */
TEST_F(SharedWireTest, TwoThatWaitForOneAnother)
{
	connect_hosts(2);
	constexpr size_t kSize = 5000;
	const RamRange ranges[] = {{0, kSize - 1, 0}, {0, 1, kSize - 1}};
	std::barrier both(2);
	const auto exchange = [&](Node &node, uint8_t to) {
		const Bytes head = frame(to, static_cast<uint8_t>(3 - to));
		std::ranges::fill(node.ram.bytes(), std::byte{to});
		EXPECT_EQ(node.wire.lend(head, ranges, 0), Wire::Lend::Done);
		both.arrive_and_wait();
		node.during_loan = [&] {
			both.arrive_and_wait();
			node.wire.recall();
			std::ranges::fill(node.ram.bytes(), std::byte{0xee});
		};
		node.receive();
		node.during_loan = nullptr;
		both.arrive_and_wait();
		EXPECT_EQ(node.wire.lend(head, ranges, 0), Wire::Lend::Done) << "still directly";
		both.arrive_and_wait();
		node.receive();
	};
	auto peer = std::async(std::launch::async, [&] { exchange(nodes[1], 1); });
	exchange(nodes[0], 2);
	peer.get();
	for (uint8_t i = 0; i < 2; i++) {
		ASSERT_EQ(nodes[i].loans.size(), 2u);
		const auto got = std::span(nodes[i].loans[0]).last(kSize);
		EXPECT_TRUE(std::ranges::all_of(got, [&](std::byte byte) {
			return byte == std::byte(i + 1);
		})) << "as it was when it was lent";
	}
}

TEST_F(SharedWireTest, LiesAboutRangesCutTheLink)
{
	const RamRange lies[] = {{1, 10, 0},  {0, 10, kRamSize - 9}, {0, 10, ~uint64_t{0}},
	                         {~0u, 1, 0}, {0, ~0u, 0},           {0, kMaxPayload + 1, 0}};
	for (const RamRange &lie : lies) {
		nodes.clear();
		start_switch();
		connect_hosts(2);
		EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&lie, 1), 0), Wire::Lend::Done);
		nodes[1].receive();
		EXPECT_TRUE(nodes[1].loans.empty());
		nodes[1].receive();
		nodes[0].receive();
		EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&lie, 1), 0),
		          Wire::Lend::Refused);
		EXPECT_TRUE(nodes[1].wire.up());
		EXPECT_EQ(nodes[0].wire.next_deadline(), std::nullopt);
		EXPECT_EQ(nodes[1].wire.next_deadline(), std::nullopt) << "no trust any more";
	}
}

TEST_F(SharedWireTest, WhoTakesNothingLosesFramesAndHoldsUpNobodyForLong)
{
	connect_hosts(3);
	const Bytes big = frame(2, 1, 1, 9000);
	while (nodes[0].wire.send(big))
		;
	EXPECT_FALSE(nodes[0].wire.room_made());
	nodes[0].wire.attend(kSecond);
	EXPECT_EQ(nodes[0].wire.next_deadline(), 2 * kSecond);
	nodes[0].wire.attend(2 * kSecond - 1);
	EXPECT_FALSE(nodes[0].wire.room_made());
	nodes[0].wire.attend(2 * kSecond);
	EXPECT_TRUE(nodes[0].wire.room_made());
	nodes[0].wire.try_again();
	EXPECT_TRUE(nodes[0].wire.send(big)) << "lost";
	EXPECT_TRUE(nodes[0].wire.send(frame(3, 1, 2)));
	nodes[2].receive();
	EXPECT_EQ(nodes[2].tags(), Tags{2});
	/* It comes back. */
	nodes[1].receive();
	nodes[1].frames.clear();
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 1, 3)));
	nodes[1].receive();
	EXPECT_EQ(nodes[1].tags(), Tags{3});
}

TEST_F(SharedWireTest, ASlowOneLosesNothing)
{
	connect_hosts(2);
	for (const uint8_t to : {uint8_t{2}, uint8_t{9}}) { /* directly, and through the switch */
		nodes[1].frames.clear();
		uint32_t sent = 0;
		for (int round = 0; sent < 3000 && round < 10000; round++) {
			while (sent < 3000 && nodes[0].wire.send(frame(to, 1, sent, 5000)))
				sent++;
			EXPECT_EQ(nodes[0].wire.room_made(), false);
			while (sent < 3000 && !nodes[0].wire.room_made())
				settle();
			nodes[0].wire.try_again();
		}
		settle();
		settle();
		settle();
		ASSERT_EQ(nodes[1].frames.size(), 3000u);
		for (uint32_t i = 0; i < 3000; i++)
			ASSERT_EQ(tag_of(nodes[1].frames[i]), i);
	}
}

TEST_F(SharedWireTest, TheOthersHearOfOneThatLeft)
{
	connect_hosts(3);
	nodes.pop_back();
	settle();
	EXPECT_TRUE(nodes[0].wire.send(frame(3, 1, 1)));
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 1, 2)));
	settle();
	EXPECT_EQ(nodes[1].tags(), (Tags{1, 2})) << "flooded, as nobody has that address";
}

TEST_F(SharedWireTest, ComesBackWithTheSwitch)
{
	connect_hosts(2);
	server.reset();
	settle_without_switch();
	EXPECT_FALSE(nodes[0].wire.up());
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 1, 1))) << "lost";
	ASSERT_TRUE(nodes[0].wire.next_deadline());

	start_switch();
	for (Node &node : nodes) {
		node.now = *node.wire.next_deadline();
		node.wire.attend(node.now);
	}
	settle();
	settle();
	EXPECT_TRUE(nodes[0].wire.up());
	EXPECT_TRUE(nodes[1].wire.up());
	nodes[0].wire.send(frame(kBroadcast, 1, 2));
	settle();
	EXPECT_EQ(nodes[1].tags(), Tags{2});
}

TEST_F(SharedWireTest, MixesWithStreams)
{
	connect_hosts(1);
	Fd stream(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
	sockaddr_un address{};
	address.sun_family = AF_UNIX;
	(path + ".stream").copy(address.sun_path, sizeof(address.sun_path) - 1);
	ASSERT_EQ(::connect(stream.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)),
	          0);
	step();
	const Bytes sent = wire::on_stream(frame(kBroadcast, 9, 3));
	ASSERT_EQ(write(stream.get(), sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
	settle();
	EXPECT_EQ(nodes[0].tags(), Tags{3});
	nodes[0].wire.send(frame(9, 1, 4));
	step();
	std::byte got[4096];
	EXPECT_EQ(read(stream.get(), got, sizeof(got)), static_cast<ssize_t>(sent.size()));
}

/* ---- lanes ---------------------------------------------------------------------------- */

/* Node 0 is a host, 1 and 2 are lanes of a card, 3 and 4 of another; the addresses are 1, 2, 3. */
class SharedLanesTest : public SharedWireTest {
protected:
	SharedLanesTest()
	{
		connect_lane(0, 0);
		for (const uint64_t card : {77, 88}) {
			connect_lane(card, 0);
			connect_lane(card, 1);
		}
		announce_addresses();
	}

	void announce_addresses()
	{
		for (const unsigned i : {0, 1, 3})
			nodes[i].wire.send(frame(kBroadcast, address(i)));
		settle();
		clear();
	}
	void clear()
	{
		for (Node &node : nodes) {
			node.frames.clear();
			node.loans.clear();
		}
	}
	static uint8_t address(unsigned node)
	{
		return std::array<uint8_t, 5>{1, 2, 2, 3, 3}[node];
	}
	Wire::Lend lend(unsigned from, uint8_t to, uint32_t qpn)
	{
		const RamRange range{0, 10, 0};
		return nodes[from].wire.lend(roce(to, address(from), qpn), std::span(&range, 1), 0);
	}
	using Counts = std::vector<size_t>;
	Counts loans()
	{
		Counts counts;
		for (const Node &node : nodes)
			counts.push_back(node.loans.size());
		return counts;
	}
	Counts frames()
	{
		Counts counts;
		for (const Node &node : nodes)
			counts.push_back(node.frames.size());
		return counts;
	}
};

TEST_F(SharedLanesTest, PacketsGoDirectlyToTheEngineOfTheirQp)
{
	const uint64_t before = frames_through_switch();
	EXPECT_EQ(lend(0, 2, qp_of(1)), Wire::Lend::Done);
	EXPECT_TRUE(nodes[0].wire.send(roce(2, 1, qp_of(1), 7)));
	EXPECT_EQ(lend(2, 3, qp_of(1)), Wire::Lend::Done);
	EXPECT_EQ(lend(2, 1, qp_of(1)), Wire::Lend::Done) << "one with a single lane";
	settle();
	EXPECT_EQ(loans(), (Counts{1, 0, 1, 0, 1}));
	EXPECT_EQ(frames(), (Counts{0, 0, 1, 0, 0}));
	EXPECT_EQ(nodes[2].tags(), Tags{7});
	clear();
	for (const uint32_t qpn : {qp_of(0), 1u, qp_of(2), qp_of(15)}) /* 1 is the GSI */
		EXPECT_EQ(lend(0, 2, qpn), Wire::Lend::Done);
	EXPECT_TRUE(nodes[4].wire.send(frame(2, 3)));
	settle();
	EXPECT_EQ(loans(), (Counts{0, 4, 0, 0, 0}));
	EXPECT_EQ(frames(), (Counts{0, 1, 0, 0, 0}));
	EXPECT_EQ(frames_through_switch(), before);
}

TEST_F(SharedLanesTest, EnginesOfACardHaveADirectWay)
{
	const uint64_t before = frames_through_switch();
	EXPECT_EQ(lend(1, 2, qp_of(1)), Wire::Lend::Done);
	EXPECT_EQ(lend(2, 2, qp_of(0)), Wire::Lend::Done);
	EXPECT_EQ(lend(2, 2, qp_of(9)), Wire::Lend::Done);
	EXPECT_EQ(lend(1, 2, qp_of(0)), Wire::Lend::Refused) << "to itself";
	EXPECT_EQ(lend(2, 2, qp_of(1)), Wire::Lend::Refused);
	settle();
	EXPECT_EQ(loans(), (Counts{0, 2, 1, 0, 0}));
	EXPECT_EQ(frames_through_switch(), before);
	EXPECT_TRUE(nodes[2].wire.send(roce(2, 2, qp_of(1))));
	EXPECT_TRUE(nodes[1].wire.send(frame(2, 2)));
	settle();
	EXPECT_EQ(frames(), Counts(5)) << "filtered";
	EXPECT_EQ(frames_through_switch(), before + 2);
}

TEST_F(SharedLanesTest, AnAddressOfAnotherCardIsToBeLearned)
{
	for (const unsigned i : {0, 1, 2}) {
		EXPECT_FALSE(nodes[i].wire.lends(roce(1, 3, qp_of(1)))) << i;
		EXPECT_FALSE(nodes[i].wire.lends(roce(2, 3, qp_of(1)))) << i;
	}
	EXPECT_TRUE(nodes[4].wire.lends(roce(2, 3, qp_of(1))));
	nodes[2].wire.send(frame(1, 3));
	settle();
	EXPECT_TRUE(nodes[2].wire.lends(roce(1, 3, qp_of(1))));
	EXPECT_FALSE(nodes[4].wire.lends(roce(1, 3, qp_of(1))));
}

TEST_F(SharedLanesTest, GroupsGoThroughTheSwitch)
{
	nodes[1].wire.send(roce(kBroadcast, 2, 0xffffff));
	settle();
	EXPECT_EQ(frames(), (Counts{1, 0, 1, 1, 1}));
	clear();
	nodes[2].wire.send(frame(kBroadcast, 2));
	settle();
	EXPECT_EQ(frames(), (Counts{1, 0, 0, 1, 0}));
}

TEST_F(SharedLanesTest, WhatTheSwitchSeesItSeesOnce)
{
	const std::string file = path + ".pcap";
	EXPECT_EQ(server->execute("capture " + file), "ok");
	EXPECT_EQ(lend(1, 2, qp_of(1)), Wire::Lend::Refused);
	nodes[1].wire.send(roce(2, 2, qp_of(1)));
	nodes[0].wire.send(roce(2, 1, qp_of(1)));
	nodes[0].wire.send(roce(kBroadcast, 1, 0xffffff));
	settle();
	EXPECT_EQ(server->execute("capture-stop"), "ok 3 frames");
	unlink(file.c_str());
	EXPECT_EQ(frames(), (Counts{0, 1, 3, 1, 1}));
}

TEST_F(SharedLanesTest, PortsNameLanesWhereThereAreSeveral)
{
	const std::string ports = server->execute("ports");
	EXPECT_NE(ports.find("; port=0 rx="), ports.npos);
	EXPECT_NE(ports.find("; port=1 card=1 lane=0 rx="), ports.npos);
	EXPECT_NE(ports.find("; port=4 card=3 lane=1 rx="), ports.npos);
	nodes.pop_back();
	step();
	EXPECT_NE(server->execute("ports").find("; port=3 rx="), ports.npos);
}

TEST_F(SharedLanesTest, OneLeaves)
{
	nodes.pop_back();
	settle();
	EXPECT_EQ(lend(0, 3, qp_of(1)), Wire::Lend::Done);
	settle();
	EXPECT_EQ(loans(), (Counts{0, 0, 0, 1}));
}

TEST_F(SharedLanesTest, ThePrimaryLeaves)
{
	nodes.pop_front();
	nodes.pop_front(); /* so lane 1 of the first card is node 0, the other card 1 and 2 */
	settle();
	const RamRange range{0, 10, 0};
	const auto lend = [&](uint32_t qpn) {
		return nodes[1].wire.lend(roce(2, 3, qpn), std::span(&range, 1), 0);
	};
	EXPECT_EQ(lend(qp_of(1)), Wire::Lend::Refused);
	nodes[1].wire.send(roce(2, 3, qp_of(1)));
	settle();
	EXPECT_EQ(frames(), (Counts{1, 0, 0})) << "flooded";
	/* The one that is left has the address, until the other is back. */
	nodes[0].wire.send(frame(kBroadcast, 2));
	settle();
	EXPECT_EQ(lend(qp_of(0)), Wire::Lend::Done);
	settle();
	EXPECT_EQ(loans(), (Counts{1, 0, 0}));
	connect_lane(77, 0);
	settle();
	EXPECT_EQ(lend(qp_of(0)), Wire::Lend::Done);
	EXPECT_EQ(lend(qp_of(1)), Wire::Lend::Done);
	settle();
	EXPECT_EQ(loans(), (Counts{2, 0, 0, 1}));
}

TEST_F(SharedLanesTest, ComeBackToTheSwitchInAnyOrder)
{
	server.reset();
	settle_without_switch();
	start_switch();
	for (const unsigned i : {2, 4, 1, 0, 3}) {
		nodes[i].now = *nodes[i].wire.next_deadline();
		nodes[i].wire.attend(nodes[i].now);
		settle();
		nodes[i].wire.send(frame(kBroadcast, address(i)));
		settle();
	}
	clear();
	EXPECT_EQ(lend(4, 2, qp_of(0)), Wire::Lend::Done);
	EXPECT_EQ(lend(1, 3, qp_of(1)), Wire::Lend::Done);
	EXPECT_TRUE(nodes[2].wire.send(frame(3, 2)));
	settle();
	EXPECT_EQ(loans(), (Counts{0, 1, 0, 0, 1}));
	EXPECT_EQ(frames(), (Counts{0, 0, 0, 1, 0}));
}

/* ---- handshake ------------------------------------------------------------------------ */

TEST_F(SharedWireTest, SaysWhyThereIsNoWire)
{
	Node nowhere("/nowhere/at/all");
	EXPECT_EQ(nowhere.wire.connect(), "/nowhere/at/all: No such file or directory");
	Node empty("");
	EXPECT_NE(empty.wire.connect(), "");
	Node longer(std::string(200, 'x'));
	EXPECT_NE(longer.wire.connect().find("107 bytes"), std::string::npos);
	Node stream(path + ".stream");
	EXPECT_NE(stream.wire.connect().find("somebody else listens"), std::string::npos);
}

TEST_F(SharedWireTest, RefusesAnotherVersion)
{
	const Message message = answer({.version = kVersion + 1});
	EXPECT_EQ(message.kind, Message::Kind::Refused);
	EXPECT_NE(std::string(message.reason).find("version " + std::to_string(kVersion)),
	          std::string::npos);
}

TEST_F(SharedWireTest, AHostNamesTheVersionOfAnotherSwitch)
{
	server.reset();
	wire::UnixListener listener(SOCK_SEQPACKET);
	ASSERT_EQ(listener.open(path), "");
	Node node(path);
	auto error = std::async(std::launch::async, [&] { return node.wire.connect(); });
	Fd fd;
	while (!(fd = listener.accept()))
		std::this_thread::yield();
	ASSERT_TRUE(send_message(fd, {.version = 9, .kind = Message::Kind::Welcome}));
	EXPECT_NE(error.get().find("speaks version 9"), std::string::npos);
}

TEST_F(SharedWireTest, RefusesRamThatCouldShrinkOrIsTooShort)
{
	const Fd open(memfd_create("ram", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	ASSERT_EQ(ftruncate(open.get(), kRamSize), 0);
	Message hello{.blocks = 1};
	hello.block_sizes[0] = kRamSize;
	const int unsealed[] = {open.get()};
	EXPECT_STREQ(answer(hello, unsealed).reason, "RAM block 0 is not sealed against shrinking");
	const Fd sealed = make_segment("ram", kRamSize / 2);
	const int truncated[] = {sealed.get()};
	EXPECT_STREQ(answer(hello, truncated).reason, "RAM block 0 is too short");
	EXPECT_STREQ(answer(hello).reason, "that is no greeting");

	Node node(path);
	EXPECT_FALSE(node.wire.share(open.get(), kRamSize));
}

TEST_F(SharedWireTest, RefusesLanesThatCannotBe)
{
	EXPECT_STREQ(answer({.card = 77, .lane = kMaxLanes}).reason, "a card has no lane 16");
	EXPECT_STREQ(answer({.lane = 1}).reason, "only a card has several lanes");
	connect_lane(77, 1);
	EXPECT_STREQ(answer({.card = 77, .lane = 1}).reason,
	             "lane 1 of that card is on the wire already");
	EXPECT_EQ(answer({.card = 77, .lane = 0}).kind, Message::Kind::Welcome);
	EXPECT_EQ(answer({.card = 78, .lane = 15}).kind, Message::Kind::Welcome);
	nodes.clear();
	step();
	EXPECT_EQ(answer({.card = 77, .lane = 1}).kind, Message::Kind::Welcome);
}

TEST_F(SharedWireTest, HangsUpOnNonsense)
{
	for (const size_t size : {size_t{1}, size_t{12}, sizeof(Message) - 1}) {
		const Fd fd = stranger();
		const Message hello;
		ASSERT_EQ(::send(fd.get(), &hello, size, 0), static_cast<ssize_t>(size));
		step();
		Message message;
		std::vector<Fd> fds;
		EXPECT_EQ(receive_message(fd, message, fds), Received::End) << size;
	}
}

TEST_F(SharedWireTest, ASecondGreetingEndsIt)
{
	const Fd fd = stranger();
	ASSERT_TRUE(send_message(fd, {}));
	step();
	ASSERT_TRUE(send_message(fd, {}));
	step();
	Message message;
	std::vector<Fd> fds;
	EXPECT_EQ(receive_message(fd, message, fds), Received::Message);
	EXPECT_EQ(message.kind, Message::Kind::Welcome);
	EXPECT_EQ(receive_message(fd, message, fds), Received::Message);
	EXPECT_EQ(message.kind, Message::Kind::Refused);
	EXPECT_EQ(receive_message(fd, message, fds), Received::End);
}

TEST_F(SharedWireTest, SoDoAWishOfAStrangerAndNonsenseOfAHost)
{
	EXPECT_EQ(answer({.kind = Message::Kind::Renew}).kind, Message::Kind::Refused);
	connect_hosts(2);
	const Fd fd = stranger();
	ASSERT_TRUE(send_message(fd, {}));
	step();
	/* Itself, nobody, no id at all, and one that has a link since just now. */
	for (const uint32_t id : {2u, 3u, kMaxHosts, ~0u, 0u})
		ASSERT_TRUE(send_message(fd, {.kind = Message::Kind::Renew, .id = id}));
	step(8);
	Message message;
	std::vector<Fd> fds;
	for (const auto kind : {Message::Kind::Welcome, Message::Kind::Peer, Message::Kind::Peer}) {
		ASSERT_EQ(receive_message(fd, message, fds), Received::Message);
		EXPECT_EQ(message.kind, kind);
	}
	EXPECT_EQ(receive_message(fd, message, fds), Received::Nothing);
	ASSERT_TRUE(send_message(fd, {.kind = Message::Kind::Gone}));
	step();
	EXPECT_EQ(receive_message(fd, message, fds), Received::Message);
	EXPECT_EQ(message.kind, Message::Kind::Refused);
}

TEST_F(SharedWireTest, RefusesTooManyHosts)
{
	std::vector<Fd> strangers;
	for (uint32_t i = 0; i < kMaxHosts; i++) {
		strangers.push_back(stranger());
		step(1);
	}
	EXPECT_STREQ(answer({}).reason, "the wire is full");
	strangers.pop_back();
	step();
	EXPECT_EQ(answer({}).kind, Message::Kind::Welcome);
}

TEST_F(SharedWireTest, TheSwitchDropsAHostWhoseRingLies)
{
	connect_hosts(1);
	const Fd fd = stranger();
	ASSERT_TRUE(send_message(fd, {}));
	step();
	Message message;
	std::vector<Fd> fds;
	ASSERT_EQ(receive_message(fd, message, fds), Received::Message);
	ASSERT_EQ(fds.size(), kWelcomeFds);
	Mapping ring;
	ASSERT_EQ(ring.map(fds[4], kRingHeaderSize, Mapping::Access::ReadWrite), "");
	reinterpret_cast<RingHeader *>(ring.bytes().data())->tail = 8;
	Bell(std::move(fds[2])).ring();
	step();
	while (receive_message(fd, message, fds) == Received::Message)
		;
	EXPECT_EQ(receive_message(fd, message, fds), Received::End);
	EXPECT_EQ(server->execute("ports").substr(0, 5), "ok 1;");
}

} // namespace
} // namespace tern::shm
