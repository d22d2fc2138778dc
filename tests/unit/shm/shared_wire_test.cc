// SPDX-License-Identifier: GPL-2.0-or-later
/* The wire between hosts: direct links, loans, greetings, and hosts that are late, violate the
 * protocol or leave. */
#include <algorithm>
#include <barrier>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>
#include <tuple>

#include "tests/unit/shm/shared_wire_fixture.h"

namespace tern::shm {
namespace {

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
		EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0, {}),
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
	EXPECT_EQ(nodes[0].wire.lend(head, ranges, 0, {}), Wire::Lend::Done);
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
	EXPECT_EQ(nodes[0].wire.lend(bytes, {}, 0, {}), Wire::Lend::Done);
	nodes[0].wire.recall(Recall::everything());
	nodes[1].receive();
	ASSERT_EQ(nodes[1].loans.size(), 1u);
	EXPECT_EQ(nodes[1].loans[0], bytes);
	EXPECT_EQ(nodes[0].wire.lend(frame(9, 1), {}, 0, {}), Wire::Lend::Refused);
	EXPECT_EQ(nodes[0].wire.lend(Bytes(kMaxEntry + 1, bytes[5]), {}, 0, {}),
	          Wire::Lend::Refused);
}

TEST_F(SharedWireTest, Bursts)
{
	connect_hosts(2);
	const RamRange ranges[] = {{0, 4097, 4096}, {0, kMaxPayload - 4097, 16384}};
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), ranges, 1024, {}), Wire::Lend::Done);
	/* The wire carries it; whether it is one the card judges. */
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(ranges).first(1), ~0u, {}),
	          Wire::Lend::Done);
	nodes[1].receive();
	ASSERT_EQ(nodes[1].loans.size(), 2u);
	EXPECT_EQ(nodes[1].loans[0].size(), frame(2, 1).size() + kMaxPayload);
	EXPECT_EQ(nodes[1].segments, (std::vector<uint32_t>{1024, ~0u}));
}

/* The budget limits the frames that a host receives in one call, however many hosts send. The hosts
 * take turns. */
TEST_F(SharedWireTest, TheBudgetIsThatOfAllHosts)
{
	constexpr unsigned kHosts = 4, kEach = 20, kBudget = 8;
	connect_hosts(kHosts);
	for (uint8_t host = 1; host < kHosts; host++)
		for (unsigned i = 0; i < kEach; i++)
			nodes[host].wire.send(frame(1, static_cast<uint8_t>(host + 1), host));
	for (unsigned round = 1; round <= kHosts; round++) {
		nodes[0].receive_some(kBudget);
		EXPECT_EQ(nodes[0].frames.size(), round * kBudget);
	}
	const std::vector<uint32_t> tags = nodes[0].tags();
	for (uint32_t host = 1; host < kHosts; host++)
		EXPECT_GE(std::ranges::count(tags, host), kBudget) << host;
	nodes[0].receive();
	EXPECT_EQ(nodes[0].frames.size(), (kHosts - 1) * kEach);
}

TEST_F(SharedWireTest, TheSwitchKnowsHowManyFramesPassItBy)
{
	connect_hosts(2);
	const RamRange ranges[] = {{0, 4097, 4096}, {0, 4096, 16384}};
	EXPECT_EQ(told("stats", "direct"), 0u);
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 1)));
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), {}, 0, {}), Wire::Lend::Done);
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), ranges, 0, {}), Wire::Lend::Done);
	EXPECT_EQ(told("stats", "direct"), 3u);
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), ranges, 1024, {}), Wire::Lend::Done);
	EXPECT_EQ(nodes[1].wire.lend(frame(1, 2), {}, 0, {}), Wire::Lend::Done);
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
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0, {}), Wire::Lend::Done);
	EXPECT_TRUE(nodes[0].wire.send(frame(2, 1, 6)));
	nodes[0].wire.recall(Recall::everything());
	EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&range, 1), 0, {}), Wire::Lend::Done);
	nodes[1].receive();
	EXPECT_EQ(nodes[1].loans.size(), 1u);
	EXPECT_EQ(nodes[1].tags(), Tags{6});
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
		EXPECT_EQ(node.wire.lend(head, ranges, 0, {}), Wire::Lend::Done);
		both.arrive_and_wait();
		node.during_loan = [&] {
			both.arrive_and_wait();
			node.wire.recall(Recall::everything());
			std::ranges::fill(node.ram.bytes(), std::byte{0xee});
		};
		node.receive();
		node.during_loan = nullptr;
		both.arrive_and_wait();
		EXPECT_EQ(node.wire.lend(head, ranges, 0, {}), Wire::Lend::Done)
		        << "still directly";
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
	const RamRange lies[] = {{2, 10, 0},  {0, 10, kRamSize - 9}, {0, 10, ~uint64_t{0}},
	                         {~0u, 1, 0}, {0, ~0u, 0},           {0, kMaxPayload + 1, 0}};
	for (const RamRange &lie : lies) {
		nodes.clear();
		start_switch();
		connect_hosts(2);
		EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&lie, 1), 0, {}),
		          Wire::Lend::Done);
		nodes[1].receive();
		EXPECT_TRUE(nodes[1].loans.empty());
		nodes[1].receive();
		nodes[0].receive();
		EXPECT_EQ(nodes[0].wire.lend(frame(2, 1), std::span(&lie, 1), 0, {}),
		          Wire::Lend::Refused);
		EXPECT_TRUE(nodes[1].wire.up());
		EXPECT_EQ(nodes[0].wire.next_deadline(), std::nullopt);
		EXPECT_EQ(nodes[1].wire.next_deadline(), std::nullopt) << "no trust any more";
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
		node.wire.maintain(node.now);
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
	const Fd unsealable(memfd_create("ram", MFD_CLOEXEC));
	ASSERT_EQ(ftruncate(unsealable.get(), kRamSize), 0);
	EXPECT_FALSE(node.wire.share(unsealable.get(), kRamSize));
	EXPECT_TRUE(node.wire.share(open.get(), kRamSize)) << "it is sealed then";
}

/* RAM and spill of a host, in the hands of another one. */
TEST_F(SharedWireTest, NobodyWritesToTheMemoryOfAnother)
{
	connect_hosts(1);
	const Fd fd = stranger();
	ASSERT_TRUE(send_message(fd, {}));
	step();
	Message message;
	std::vector<Fd> fds;
	do
		ASSERT_EQ(receive_message(fd, message, fds), Received::Message);
	while (message.kind != Message::Kind::Peer);
	ASSERT_EQ(message.blocks, 2u);
	ASSERT_EQ(fds.size(), kPeerFds + message.blocks);
	for (const Fd &block : std::span(fds).subspan(kPeerFds)) {
		const std::string self = "/proc/self/fd/" + std::to_string(block.get());
		const Fd again(open(self.c_str(), O_RDWR));
		Mapping mapping;
		for (const Fd *way : {&block, &again}) {
			EXPECT_NE(mapping.map(*way, kRamSize, Mapping::Access::ReadWrite), "");
			EXPECT_EQ(pwrite(way->get(), "x", 1, 0), -1);
			EXPECT_NE(fallocate(way->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			                    0, 4096),
			          0);
			EXPECT_NE(ftruncate(way->get(), 0), 0);
		}
		ASSERT_EQ(mapping.map(block, kRamSize, Mapping::Access::Read), "");
		EXPECT_NE(mprotect(mapping.bytes().data(), kRamSize, PROT_READ | PROT_WRITE), 0);
	}
	EXPECT_EQ(nodes[0].ram.bytes()[0], std::byte{0});
}

TEST_F(SharedWireTest, RefusesMoreRamThanAHostMayShare)
{
	const Fd ram = make_segment("ram", kMaxRam);
	const int fds[] = {ram.get(), ram.get()};
	Message hello{.blocks = 2};
	for (const uint64_t second : {kMaxRam, uint64_t{1}, ~uint64_t{0} - kMaxRam + 1}) {
		hello.block_sizes[0] = kMaxRam;
		hello.block_sizes[1] = second;
		EXPECT_STREQ(answer(hello, fds).reason, "that is more RAM than a host may share");
	}
	hello.block_sizes[0] = kMaxRam - 1;
	hello.block_sizes[1] = 1;
	EXPECT_EQ(answer(hello, fds).kind, Message::Kind::Welcome);

	Node node(path);
	EXPECT_FALSE(node.wire.share(ram.get(), kMaxRam - Spill::kSize - kRamSize + 1));
	EXPECT_TRUE(node.wire.share(ram.get(), kMaxRam - Spill::kSize - kRamSize));
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

/* Each gets rings with all others, and frames wait meanwhile. */
TEST_F(SharedWireTest, AdmitsAHostAStep)
{
	std::vector<Fd> strangers;
	for (int i = 0; i < 6; i++)
		strangers.push_back(stranger());
	server->step(0);
	for (const Fd &fd : strangers)
		ASSERT_TRUE(send_message(fd, {}));
	for (size_t step = 1; step <= strangers.size(); step++) {
		server->step(0);
		size_t welcome = 0;
		for (const Fd &fd : strangers) {
			std::byte first;
			welcome += recv(fd.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
		}
		EXPECT_EQ(welcome, step);
	}
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

/* Takes all addresses that the process lets memory of others have, but @spare bytes. */
class AllAddresses {
public:
	explicit AllAddresses(size_t spare)
	{
		Mapping left;
		EXPECT_TRUE(!spare || left.map(fd_, spare, Mapping::Access::Read).empty());
		for (size_t size = kHuge; size >= kPage; size /= 2) {
			Mapping next;
			while (next.map(fd_, size, Mapping::Access::Read).empty())
				taken_.push_back(std::move(next));
		}
	}

private:
	static constexpr size_t kHuge = kMaxMapped / 4, kPage = 4096;

	const Fd fd_ = make_segment("test", kHuge);
	std::vector<Mapping> taken_;
};

/* One end has no addresses for the link, and the other one has it already. */
TEST_F(SharedWireTest, ALinkThatOneEndCannotMapIsClosed)
{
	constexpr size_t kRing = kRingHeaderSize + (256 << 10);
	for (const size_t spare : {size_t{0}, kRing, 2 * kRing}) {
		SCOPED_TRACE(spare);
		connect_lane(0, 0);
		connect_lane(0, 0);
		nodes[1].receive();
		EXPECT_EQ(nodes[1].wire.hosts(), 2u);
		{
			const AllAddresses taken(spare);
			nodes[0].receive();
		}
		EXPECT_EQ(nodes[0].wire.hosts(), 1u);
		nodes[0].wire.send(frame(kBroadcast, 1, 1));
		nodes[1].wire.send(frame(kBroadcast, 2, 2));
		settle();
		EXPECT_EQ(nodes[1].wire.hosts(), 1u);
		nodes[0].wire.send(frame(2, 1, 3));
		nodes[1].wire.send(frame(1, 2, 4));
		settle();
		EXPECT_EQ(nodes[0].tags(), (Tags{2, 4}));
		EXPECT_EQ(nodes[1].tags(), (Tags{1, 3}));
		nodes.clear();
		step();
	}
}

/* It makes an eventfd full and blocking, where it has one, and goes to sleep. */
TEST_F(SharedWireTest, RingingCannotBeMadeToBlock)
{
	connect_hosts(1);
	const Fd fd = stranger();
	ASSERT_TRUE(send_message(fd, {}));
	step();
	Message message;
	std::vector<Fd> fds;
	ASSERT_EQ(receive_message(fd, message, fds), Received::Message);
	ASSERT_EQ(fds.size(), kWelcomeFds);
	const int listener = fds[1].get();
	const uint64_t full = ~uint64_t{1};
	uint64_t rings;
	std::ignore = read(listener, &rings, sizeof(rings));
	std::ignore = write(listener, &full, sizeof(full));
	fcntl(listener, F_SETFL, 0);
	Mapping ring;
	ASSERT_EQ(ring.map(fds[3], kRingHeaderSize, Mapping::Access::ReadWrite), "");
	reinterpret_cast<RingHeader *>(ring.bytes().data())->consumer_sleeps = 1;

	nodes[0].wire.send(frame(kBroadcast, 1));
	auto done = std::async(std::launch::async, [&] { step(); });
	EXPECT_EQ(done.wait_for(std::chrono::seconds(10)), std::future_status::ready);
	std::ignore = read(listener, &rings, sizeof(rings)); /* ends it */
	done.get();
	EXPECT_EQ(reinterpret_cast<RingHeader *>(ring.bytes().data())->consumer_sleeps, 0u);
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
	const Bell bell(std::move(fds[2]));
	bell.ring();
	step();
	while (receive_message(fd, message, fds) == Received::Message)
		;
	EXPECT_EQ(receive_message(fd, message, fds), Received::End);
	EXPECT_EQ(server->execute("ports").substr(0, 5), "ok 1;");
}

} // namespace
} // namespace tern::shm
