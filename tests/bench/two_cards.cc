// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/two_cards.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace tern::bench {

using namespace hw;

namespace {

constexpr size_t kMemory = size_t{1} << 36; /* of which only what is touched takes room */
constexpr unsigned kLogCq = 11;
constexpr unsigned kLogAq = 7;
constexpr uint64_t kPageSize = 4096;
constexpr uint8_t kMtu4096 = 5;
constexpr unsigned kTurn = 256;
constexpr uint64_t kStride = 2654435761; /* from one region to the next, over all of them */

/* What is measured is with congestion control, as it is on a card after power-on. */
void check_congestion_control(test::Driver &driver)
{
	const auto c = driver.command(test::make_command(TERN_AQ_QUERY_CONGESTION)).congestion;
	if (c.value[TERN_CC_RP_ALGORITHM].get() != TERN_CC_DCQCN)
		throw std::logic_error("congestion control is not DCQCN");
}

} // namespace

Host::Host(uint8_t number)
        : mac{2, 0, 0, 0, 0, number}, gid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0,
                                           number}},
          memory(kMemory), card({.mac = mac}, {memory, *this, *this, *this}),
          driver(card, memory, [this] {
	          while (card.run(kTurn)) {
	          }
          })
{
	card.set_link(true);
	driver.enable(kLogAq);
	check_congestion_control(driver);
	const auto eq = driver.create_eq(0);
	driver.set_gid(0, TERN_GID_ROCE_V2, gid);
	pd = driver.alloc_pd();
	cq = driver.create_cq(eq, kLogCq, 0, {1, 12});
}

bool Host::is_for_slow_peer(std::span<const std::byte> head) const
{
	return slow_peer && std::ranges::equal(std::as_bytes(std::span(*slow_peer)), head.first(6));
}

bool Host::transmit(std::span<const std::byte> frame)
{
	if (is_for_slow_peer(frame)) {
		if (!slow_room)
			return false;
		slow_room--;
		return true;
	}
	sent++;
	peer->card.receive(frame);
	return true;
}

Wire::Lend Host::lend(std::span<const std::byte> head, std::span<const HostRange> payload,
                      uint32_t segment, const Loan & /* loan */)
{
	if (is_for_slow_peer(head)) {
		if (!slow_room)
			return Lend::Full;
		slow_room--;
		return Lend::Done;
	}
	if (!borrows)
		return Lend::Refused;
	sent++;
	for (size_t i = 0; i < payload.size(); i++)
		pieces_[i] = {memory.data(payload[i].iova), payload[i].size};
	peer->card.receive(head, std::span(pieces_).first(payload.size()), segment);
	return Lend::Done;
}

test::HostMr Host::make_area(uint64_t size, unsigned page_shift)
{
	auto mr = driver.create_mr(pd, 0, size, test::kAllAccess, {2, page_shift});
	/* Pages that are there, as a program's are after its first turn. */
	for (uint64_t at = 0; at < size; at += kPageSize)
		memory.poke(mr.buffer.at(at), std::as_bytes(std::span(&at, 1)));
	return mr;
}

std::unique_ptr<test::HostQp> Host::make_qp(unsigned log_depth)
{
	test::QpOptions options;
	options.pd = pd;
	options.send_cqn = options.recv_cqn = cq->number;
	options.sq_log_size = options.rq_log_size = static_cast<uint8_t>(log_depth);
	options.rq_log_stride = 4;
	/* As the driver lays them out. */
	if (uint64_t{TERN_SQ_BLOCK + TERN_SEG_SIZE} << log_depth > kPageSize)
		options.layout = {2, 12};
	return driver.create_qp(options);
}

void connect(Host &a, test::HostQp &near, Host &b, test::HostQp &far)
{
	test::Connection path;
	path.mtu = kMtu4096;
	path.timeout = 14;
	path.dest_qpn = far.number;
	path.dgid = b.gid;
	path.dmac = b.mac;
	near.connect(path);
	path.dest_qpn = near.number;
	path.dgid = a.gid;
	path.dmac = a.mac;
	far.connect(path);
}

TwoCards::TwoCards(uint64_t area, unsigned log_depth, unsigned page_shift, uint32_t qps)
        : from(a.make_area(area, page_shift)), to(b.make_area(area, page_shift)),
          log_depth_(log_depth), page_size_(uint64_t{1} << page_shift)
{
	a.peer = &b;
	b.peer = &a;
	while (qps--)
		connect();
}

void TwoCards::connect()
{
	Connection c{a.make_qp(log_depth_), b.make_qp(log_depth_)};
	bench::connect(a, *c.near, b, *c.far);
	connections_.push_back(std::move(c));
}

std::vector<uint32_t> TwoCards::make_regions(uint32_t count)
{
	std::vector<uint32_t> keys;
	auto c = test::make_command(TERN_AQ_CREATE_MR);
	c.create_mr.length = to.size;
	c.create_mr.pages = to.buffer.pages();
	c.create_mr.pdn = b.pd;
	c.create_mr.access = test::kAllAccess;
	while (count--) {
		const auto result = b.driver.command(c);
		if (result.status != TERN_AQ_OK)
			throw std::runtime_error("no more regions");
		keys.push_back(result.created.id.get());
	}
	return keys;
}

void TwoCards::prepare(const Job &job)
{
	prepare(job, std::span(&to.key, 1));
}

void TwoCards::prepare(const Job &job, std::span<const uint32_t> rkeys)
{
	job_ = job;
	copies_.clear();
	for (uint32_t i = 0; i < std::min(job.slots, 1u << log_depth_); i++)
		add_copy(uint64_t{i} * job.size);
	for (Connection &c : connections_)
		fill(c, rkeys);
}

void TwoCards::fill(Connection &c, std::span<const uint32_t> rkeys)
{
	const uint32_t depth = 1u << log_depth_;
	for (uint32_t i = 0; i < depth; i++) {
		const uint64_t offset = uint64_t{i % job_.slots} * job_.size;
		test::SendRequest request;
		request.opcode = job_.opcode;
		request.flags = job_.flags;
		request.remote_addr = offset;
		request.rkey = rkeys[uint64_t{i} * kStride % rkeys.size()];
		request.swap_add = 1;
		if (job_.flags & TERN_WQE_INLINE)
			request.inline_data.resize(job_.size);
		else
			request.sges = {from.sge(offset, job_.size)};
		const auto blocks = test::encode(request);
		if (blocks.size() != TERN_SQ_BLOCK)
			throw std::logic_error("one request, one block");
		c.near->buffer.write(uint64_t{i} * TERN_SQ_BLOCK, blocks);
		if (takes_recv())
			c.far->post_recv(to.sge(offset, job_.size));
	}
}

/* Those that were consumed, as they were. */
void TwoCards::post_recvs(Connection &c, uint32_t count)
{
	c.far->rq_pi += count;
	b.memory.put(c.far->record + offsetof(tern_hw_qp_record, rq_pi),
	             Le<uint32_t>(c.far->rq_pi));
}

namespace {

/* Takes @count completions that must be there. */
void take(Host &host, uint32_t count)
{
	auto &ring = host.cq->ring;
	ring.ci += count - 1;
	const auto last = ring.poll();
	if (!last || last->status != TERN_WC_SUCCESS)
		throw std::runtime_error("a request has failed");
	host.memory.put(host.cq->record + offsetof(tern_hw_cq_record, ci), Le<uint32_t>(ring.ci));
}

} // namespace

void TwoCards::perform(uint32_t qp, uint32_t count)
{
	Connection &c = connections_[qp];
	c.near->sq_pi += count;
	c.near->publish();
	/* What one sends makes work for the other. */
	for (uint64_t before = ~uint64_t{0}; before != a.sent + b.sent;) {
		before = a.sent + b.sent;
		while (a.card.run(kTurn) | b.card.run(kTurn)) {
		}
	}
	if (job_.flags & TERN_WQE_SIGNALED)
		take(a, count);
	if (takes_recv()) {
		take(b, count);
		post_recvs(c, count);
	}
}

void TwoCards::add_copy(uint64_t offset)
{
	std::vector<Copy> parts;
	for (uint64_t end = offset + job_.size; offset < end; offset += parts.back().size) {
		std::byte *near = a.memory.data(from.buffer.at(offset));
		std::byte *far = b.memory.data(to.buffer.at(offset));
		const uint64_t size = std::min(end - offset, page_size_ - offset % page_size_);
		const bool read = job_.opcode == TERN_OP_READ;
		parts.push_back({read ? near : far, read ? far : near, size});
	}
	copies_.push_back(std::move(parts));
}

void TwoCards::copy(uint32_t count)
{
	while (count--) {
		for (const Copy &part : copies_[next_copy_])
			std::memcpy(part.to, part.from, part.size);
		next_copy_ = (next_copy_ + 1) % copies_.size();
	}
}

} // namespace tern::bench
