/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hosts and switch with real sockets and memory; every step is taken by hand. */
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "qemu/shm/shared_wire.h"
#include "qemu/wire/server.h"
#include "tests/unit/wire/frames.h"

namespace tern::shm {

using wire::Bytes;
using wire::frame;
using wire::kBroadcast;
using wire::qp_of;
using wire::roce;
using wire::tag_of;

inline constexpr size_t kRamSize = 1 << 20;
inline constexpr uint64_t kSecond = 1'000'000'000;

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
		wire.receive_messages(now);
		wire.maintain(now);
		while (wire.receive(8, *this))
			;
	}
	/* At most @count frames. */
	void receive_some(unsigned count) { wire.receive(count, *this); }
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
	uint32_t lost = 0; /* packets, as it was told */

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
	void revoked(uint32_t packets) override { lost += packets; }
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

} // namespace tern::shm
