// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/bench/world.h"

#include <ctime>
#include <stdexcept>

namespace tern::bench {

using namespace hw;

namespace {

constexpr unsigned kLogCq = 20;
constexpr unsigned kWarmUp = 2'000;
constexpr unsigned kLogDepth = 6;
constexpr uint32_t kWritesInFlight = 8; /* of the neighbour with 64 KiB */
constexpr uint32_t kLong = 64 << 10;

double cpu_us()
{
	timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

/* What two readings of the clock differ by with nothing between them. */
double clock_cost()
{
	static const double cost = [] {
		std::vector<double> differences;
		for (int i = 0; i < 10'000; i++) {
			const double begin = cpu_us();
			differences.push_back(cpu_us() - begin);
		}
		return median(differences);
	}();
	return cost;
}

} // namespace

double median(std::vector<double> values)
{
	std::ranges::sort(values);
	return values[values.size() / 2];
}

void touch(test::FlatMemory &memory, Iova from, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += 4096)
		memory.put(from + at, uint8_t{0});
}

World::World(uint32_t scale, Neighbour neighbour) : scale_(scale), neighbour_(neighbour)
{
	a.peer = &b;
	b.peer = &a;
	source = std::make_unique<test::HostMr>(a.make_area(1 << 20, 21));
	area = std::make_unique<test::HostMr>(b.make_area(1 << 20, 21));
	near_ = a.make_qp(kLogDepth);
	far_ = b.make_qp(kLogDepth);
	connect(a, *near_, b, *far_);
	test::SendRequest write{
	        .opcode = TERN_OP_WRITE, .flags = TERN_WQE_SIGNALED, .rkey = area->key};
	if (neighbour == Neighbour::kLatency) {
		write.flags |= TERN_WQE_INLINE;
		write.inline_data.resize(8);
	} else {
		write.sges = {{0, kLong, source->key}};
	}
	const auto block = test::encode(write);
	for (uint32_t i = 0; i < 1u << kLogDepth; i++)
		near_->buffer.write(uint64_t{i} * TERN_SQ_BLOCK, block);
	other_cq_ = a.driver.create_cq(eq, kLogCq);
	touch(a.memory, other_cq_->ring.buffer().at(0), sizeof(tern_hw_cqe) << kLogCq);
}

std::unique_ptr<test::HostQp> World::make_qp(unsigned log_sq, unsigned log_rq, uint8_t type)
{
	test::QpOptions options;
	options.type = type;
	options.pd = a.pd;
	options.send_cqn = options.recv_cqn = other_cq_->number;
	options.sq_log_size = static_cast<uint8_t>(log_sq);
	options.rq_log_size = static_cast<uint8_t>(log_rq);
	options.rq_log_stride = 4;
	options.layout = {2, 12};
	return a.driver.create_qp(options);
}

uint32_t World::completed(const std::function<void(const tern_hw_cqe &)> &each)
{
	const uint32_t before = other_cq_->ring.ci;
	while (const auto cqe = other_cq_->ring.poll())
		each(*cqe);
	a.memory.put(other_cq_->record + offsetof(tern_hw_cq_record, ci),
	             Le<uint32_t>(other_cq_->ring.ci));
	return other_cq_->ring.ci - before;
}

Result World::measure(const std::function<void()> &start, std::function<bool()> done)
{
	if (!done)
		done = [this] { return a.driver.result(a.driver.aq_pi - 1).has_value(); };
	for (unsigned i = 0; i < kWarmUp; i++)
		step();
	result_ = {};
	cards_ = posted_ = 0;
	timed(start);
	do {
		step();
	} while (!done());
	result_.took = cards_;
	return result_;
}

void World::timed(const std::function<void()> &call)
{
	const double begin = cpu_us();
	call();
	const double took = std::max(cpu_us() - begin - clock_cost(), 0.0);
	result_.longest = std::max(result_.longest, took);
	cards_ += took;
}

/* The neighbour's program, before the cards work. */
void World::post()
{
	const uint32_t most = neighbour_ == Neighbour::kLatency ? 1 : kWritesInFlight;
	if (near_->sq_pi - a.cq->ring.ci >= most)
		return;
	posted_ = cards_;
	near_->sq_pi = a.cq->ring.ci + most;
	near_->publish();
}

/* A round of both engines, and the neighbour's program. */
void World::step()
{
	post();
	timed([this] { a.card.run(kBudget); });
	timed([this] { b.card.run(kBudget); });
	while (const auto cqe = a.cq->ring.poll()) {
		if (cqe->status != TERN_WC_SUCCESS)
			throw std::logic_error("a write of the neighbour has failed");
		result_.writes++;
		if (neighbour_ == Neighbour::kLatency)
			result_.waits.push_back(cards_ - posted_);
	}
	a.memory.put(a.cq->record + offsetof(tern_hw_cq_record, ci), Le<uint32_t>(a.cq->ring.ci));
}

tern_hw_aq_cmd object(tern_hw_aq_op opcode, uint32_t id)
{
	auto c = test::make_command(opcode);
	c.object.id = id;
	return c;
}

tern_hw_aq_cmd modify(const test::HostQp &qp, tern_hw_qp_state state)
{
	auto c = test::make_command(TERN_AQ_MODIFY_QP);
	c.modify_qp.qpn = qp.number;
	c.modify_qp.attr_mask = uint32_t{TERN_QP_STATE};
	c.modify_qp.attr.state = static_cast<uint8_t>(state);
	return c;
}

} // namespace tern::bench
