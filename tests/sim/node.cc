// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/node.h"

#include <algorithm>
#include <cstring>

namespace tern::sim {

using namespace hw;

namespace {
constexpr size_t kDeviceMemory = 256 << 10;
/* Of every other node, whose numbers are so no small ones; engines of a card do not meet here. */
constexpr uint32_t kEngine = 14;
} // namespace

Mac node_mac(unsigned i)
{
	return {2, 0x7e, 0x44, 0, 0, static_cast<uint8_t>(i + 1)};
}

std::vector<NodeGid> node_gids(unsigned i)
{
	const auto last = static_cast<uint8_t>(i + 1);
	const Gid ipv4{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 44, 0, last}};
	const Gid ipv6{{0xfd, 0, 0x7e, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
	return {{TERN_GID_ROCE_V2, ipv4, 0xffff},
	        {TERN_GID_ROCE_V2, ipv6, 0xffff},
	        {TERN_GID_ROCE_V1, ipv6, 0xffff},
	        {TERN_GID_ROCE_V2, ipv4, 42}};
}

Node::Node(EventLoop &l, Rng rng, unsigned number, const LinkConfig &link, Link::Sink sink)
        : loop(l), mac(node_mac(number)), gids(node_gids(number)), device_memory(kDeviceMemory),
          uplink(l, rng.fork(), link, std::move(sink)), card({.mac = mac,
                                                              .engine = number % 2 ? kEngine : 0,
                                                              .engines = kEngine + 1,
                                                              .device_memory = device_memory},
                                                             {memory, *this, *this, l}),
          driver(card, memory,
                 [this] {
	                 card.run(16);
	                 wake();
                 }),
          rng_(rng)
{
	uplink.on_room = [this] {
		card.wire_ready();
		wake();
	};
	driver.device_memory = device_memory;
	card.set_link(true);
	set_up();
}

void Node::set_up()
{
	driver.enable(3);
	for (unsigned i = 0; i < gids.size(); i++)
		driver.set_gid(i, gids[i].type, gids[i].gid, gids[i].vlan);
}

void Node::reset_card()
{
	card.write_register(TERN_REG_CTRL, TERN_CTRL_RESET);
	set_up();
}

void Node::wake()
{
	run_at(loop.now() + rng_.between(50, 500));
}

void Node::receive(const Link::Frame &frame)
{
	card.receive(frame);
	wake();
}

void Node::receive(std::span<const std::byte> head,
                   std::span<const std::span<const std::byte>> payload, uint32_t segment)
{
	card.receive(head, payload, segment);
	wake();
}

uint64_t Node::recall(const Recall &what)
{
	return uplink.recall(what, [this](const HostRange &range) {
		return memory.bytes(range.iova, range.size);
	});
}

void Node::raise(unsigned vector)
{
	loop.after(rng_.between(500, 5000), [this, vector] {
		if (on_interrupt)
			on_interrupt(vector);
	});
}

/* Of several wishes the earliest counts; the others' events find that it is not their time. */
void Node::run_at(uint64_t when)
{
	if (when >= next_run_)
		return;
	next_run_ = when;
	loop.at(when, [this, when] {
		if (next_run_ != when)
			return;
		next_run_ = kNever;
		run();
	});
}

void Node::run()
{
	if (card.run(static_cast<unsigned>(rng_.between(1, 40))))
		wake();
	else if (const auto deadline = card.next_deadline())
		run_at(std::max(*deadline, loop.now() + 1));
}

Fabric::Fabric(uint64_t seed, unsigned count, const LinkConfig &link) : rng(seed)
{
	for (unsigned i = 0; i < count; i++)
		nodes.push_back(std::make_unique<Node>(
		        loop, rng.fork(), i, link,
		        [this, i](const Link::Frame &frame, const Link::Loan &loan) {
			        forward(frame, loan, *nodes[i]);
		        }));
}

void Fabric::forward(const Link::Frame &frame, const Link::Loan &loan, Node &from)
{
	if (frame.size() < sizeof(Mac))
		return;
	if (tap)
		tap(frame, loan);
	std::vector<std::span<const std::byte>> payload;
	if (!loan.moved.empty())
		payload.push_back(loan.moved);
	for (const HostRange &range : loan.payload) {
		const auto pieces = from.memory.pieces(range.iova, range.size);
		if (pieces.empty()) {
			from.overdue++;
			return;
		}
		payload.insert(payload.end(), pieces.begin(), pieces.end());
	}
	entered_ += loan.packets();
	const bool multicast = std::to_integer<int>(frame[0]) & 1;
	const auto offer = [&](Node &node) {
		if (multicast ? &node == &from
		              : std::memcmp(frame.data(), node.mac.data(), sizeof(Mac)) != 0)
			return;
		left_ += loan.packets();
		if (loan.lent)
			node.receive(frame, payload, loan.segment);
		else
			node.receive(frame);
	};
	for (const auto &node : nodes)
		offer(*node);
	for (Node *node : guests)
		offer(*node);
}

std::string Fabric::imbalance()
{
	const auto idle = [this] {
		return std::ranges::all_of(nodes, [](const auto &n) { return n->uplink.idle(); });
	};
	if (!loop.run_until(loop.now() + 1'000'000'000, idle))
		return "the links are never idle";
	uint64_t sent = left_, received = entered_;
	for (const auto &node : nodes) {
		sent += node->driver.stat(TERN_STAT_TX_FRAMES) + node->uplink.counts().duplicated;
		received += node->driver.stat(TERN_STAT_RX_FRAMES) + node->uplink.counts().lost;
	}
	return sent == received ? ""
	                        : std::to_string(static_cast<int64_t>(sent - received)) +
	                                  " packets are not accounted for";
}

} // namespace tern::sim
