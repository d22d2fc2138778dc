// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long a QP waits while its card does what others asked for: admin commands, flushes, timers,
 * messages. A neighbour writes 8 bytes again and again meanwhile, and waits for each write. Times
 * are those of the processor, so that other programs on the machine do not count. The longest pause
 * is the longest single call of a card.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tests/bench/two_cards.h"

namespace tern::bench {
namespace {

using namespace hw;

/* As the engine in QEMU has it. */
constexpr unsigned kBudget = 16;
constexpr uint32_t kAttackers = 64;
constexpr unsigned kRounds = 3;
constexpr unsigned kLogCq = 20;
constexpr unsigned kWarmUp = 2'000;

double cpu_us()
{
	timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

/** Memory that the host has touched before. */
void touch(test::FlatMemory &memory, Iova from, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += 4096)
		memory.put(from + at, uint8_t{0});
}

double median(std::vector<double> values)
{
	std::ranges::sort(values);
	return values[values.size() / 2];
}

struct Result {
	double longest = 0;        /* us */
	double took = 0;           /* us */
	std::vector<double> waits; /* us, for each write of the neighbour */

	double rate() const { return static_cast<double>(waits.size()) / took; }
};

/** Two hosts, and between them the neighbour. */
class World {
public:
	/** @scale: divides all sizes. */
	explicit World(uint32_t scale) : scale_(scale)
	{
		a.peer = &b;
		b.peer = &a;
		source = std::make_unique<test::HostMr>(a.make_area(1 << 20, 21));
		area = std::make_unique<test::HostMr>(b.make_area(1 << 20, 21));
		near_ = a.make_qp(6);
		far_ = b.make_qp(6);
		connect(a, *near_, b, *far_);
		test::SendRequest write{.opcode = TERN_OP_WRITE,
		                        .flags = TERN_WQE_SIGNALED | TERN_WQE_INLINE,
		                        .rkey = area->key};
		write.inline_data.resize(8);
		const auto block = test::encode(write);
		for (uint32_t i = 0; i < 1u << 6; i++)
			near_->buffer.write(uint64_t{i} * TERN_SQ_BLOCK, block);
		other_cq_ = a.driver.create_cq(eq, kLogCq);
		touch(a.memory, other_cq_->ring.buffer().at(0), sizeof(tern_hw_cqe) << kLogCq);
	}

	uint32_t scaled(uint32_t n) const { return std::max(n / scale_, 2u); }
	unsigned log_scaled(unsigned log) const
	{
		return log - static_cast<unsigned>(std::min(31 - __builtin_clz(scale_), 6));
	}
	/** A QP of A with long queues, which completes to a CQ of its own. */
	std::unique_ptr<test::HostQp> make_qp(unsigned log_sq, unsigned log_rq,
	                                      uint8_t type = TERN_QPT_RC)
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
	/** Returns the number of CQEs of these QPs since the last call. @each is called for each of
	 * them with its QPN. */
	uint32_t completed(const std::function<void(uint32_t qpn)> &each = [](uint32_t) {})
	{
		const uint32_t before = other_cq_->ring.ci;
		while (const auto cqe = other_cq_->ring.poll())
			each(cqe->qpn.get());
		a.memory.put(other_cq_->record + offsetof(tern_hw_cq_record, ci),
		             Le<uint32_t>(other_cq_->ring.ci));
		return other_cq_->ring.ci - before;
	}

	/** Measures @start, which is one call, and what follows until @done, or without it until
	 * the admin commands have completed. */
	Result measure(const std::function<void()> &start, std::function<bool()> done = {})
	{
		if (!done)
			done = [this] { return commands_done(); };
		for (unsigned i = 0; i < kWarmUp; i++)
			step();
		result_ = {};
		const double begin = cpu_us();
		timed(start);
		do {
			step();
		} while (!done());
		result_.took = cpu_us() - begin;
		return result_;
	}
	void timed(const std::function<void()> &call)
	{
		const double begin = cpu_us();
		call();
		result_.longest = std::max(result_.longest, cpu_us() - begin);
	}
	uint32_t submit(const tern_hw_aq_cmd &command) { return a.driver.submit(command); }

	Host a{1};
	Host b{2};
	test::HostEq eq = a.driver.create_eq(1);
	std::unique_ptr<test::HostMr> source; /* of A */
	std::unique_ptr<test::HostMr> area;   /* of B */

private:
	bool commands_done() { return a.driver.result(a.driver.aq_pi - 1).has_value(); }
	/** A round of both engines, and the neighbour's program. */
	void step()
	{
		if (a.cq->ring.ci == near_->sq_pi) {
			posted_ = cpu_us();
			near_->sq_pi++;
			near_->publish();
		}
		timed([this] { a.card.run(kBudget); });
		timed([this] { b.card.run(kBudget); });
		while (a.cq->ring.poll())
			result_.waits.push_back(cpu_us() - posted_);
		a.memory.put(a.cq->record + offsetof(tern_hw_cq_record, ci),
		             Le<uint32_t>(a.cq->ring.ci));
	}

	uint32_t scale_;
	double posted_ = 0; /* us; the neighbour's last write */
	std::unique_ptr<test::HostQp> near_;
	std::unique_ptr<test::HostQp> far_;
	std::unique_ptr<test::HostCq> other_cq_;
	Result result_;
};

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

Result nothing(World &w)
{
	int rounds = 0;
	return w.measure([] {}, [&] { return ++rounds == 20'000; });
}

Result resize_cq(World &w)
{
	const auto cq = w.a.driver.create_cq(w.eq, 4, 0, {1, 12});
	const unsigned log_size = w.log_scaled(22);
	auto c = test::make_command(TERN_AQ_RESIZE_CQ);
	c.resize_cq.pages.iova = w.a.memory.alloc(sizeof(tern_hw_cqe) << log_size, 4096);
	c.resize_cq.record = w.a.memory.alloc(64);
	c.resize_cq.cqn = cq->number;
	c.resize_cq.log_size = static_cast<uint8_t>(log_size);
	touch(w.a.memory, c.resize_cq.pages.iova.get(), sizeof(tern_hw_cqe) << log_size);
	return w.measure([&] { w.submit(c); });
}

/** As many regions as a card has. */
void make_regions(World &w, uint32_t pd)
{
	for (uint32_t i = 0; i < w.scaled(1'000'000); i++)
		w.a.driver.create_fast_mr(pd);
}

Result dealloc_pd(World &w)
{
	make_regions(w, w.a.driver.alloc_pd());
	const uint32_t pd = w.a.driver.alloc_pd();
	return w.measure([&] { w.submit(object(TERN_AQ_DEALLOC_PD, pd)); });
}

Result destroy_eq(World &w)
{
	for (uint32_t i = 0; i < w.scaled(100'000); i++)
		w.a.driver.create_cq(w.eq, 0);
	const auto eq = w.a.driver.create_eq(2);
	return w.measure([&] { w.submit(object(TERN_AQ_DESTROY_EQ, eq.number)); });
}

/** Binds @count windows through @qp. */
void bind_windows(World &w, test::HostQp &qp, uint32_t count)
{
	const auto region =
	        w.a.driver.create_mr(w.a.pd, 0, 4096, test::kAllAccess | TERN_ACCESS_MW_BIND);
	for (uint32_t i = 0; i < count; i++) {
		test::SendRequest r{.opcode = TERN_OP_BIND_MW, .flags = 0};
		r.bind.emplace();
		r.bind->length = uint64_t{8};
		r.bind->rkey = w.a.driver.alloc_mw(w.a.pd, TERN_MW_TYPE_2, 1);
		r.bind->lkey = region.key;
		r.bind->access = TERN_ACCESS_REMOTE_WRITE;
		qp.post_send(r);
		w.a.driver.pump();
	}
}

Result destroy_qp_with(World &w, uint32_t windows, bool regions)
{
	if (regions)
		make_regions(w, w.a.pd);
	const auto qp = w.make_qp(4, 4);
	const auto far = w.b.make_qp(4);
	connect(w.a, *qp, w.b, *far);
	bind_windows(w, *qp, windows);
	return w.measure([&] { w.submit(object(TERN_AQ_DESTROY_QP, qp->number)); });
}

Result destroy_qp_window(World &w)
{
	return destroy_qp_with(w, 1, true);
}

Result destroy_qp_windows(World &w)
{
	return destroy_qp_with(w, w.scaled(200'000), false);
}

Result destroy_srq(World &w)
{
	const uint32_t xrcd = w.a.driver.alloc_xrcd();
	const auto srq =
	        w.a.driver.create_srq({.pd = w.a.pd, .xrcdn = xrcd, .cqn = w.a.cq->number});
	for (uint32_t i = 0; i < w.scaled(100'000); i++)
		w.a.driver.create_qp({.type = TERN_QPT_XRC_TGT, .xrcdn = xrcd});
	return w.measure([&] { w.submit(object(TERN_AQ_DESTROY_SRQ, srq->number)); });
}

/** A QP with full queues. */
std::unique_ptr<test::HostQp> full_qp(World &w, std::unique_ptr<test::HostQp> &far)
{
	const unsigned log_sq = w.log_scaled(18);
	const unsigned log_rq = w.log_scaled(16);
	auto qp = w.make_qp(log_sq, log_rq);
	far = w.b.make_qp(4);
	connect(w.a, *qp, w.b, *far);
	/* Refused by the peer. */
	test::SendRequest write{.opcode = TERN_OP_WRITE, .flags = TERN_WQE_INLINE, .rkey = 0x100};
	write.inline_data.resize(8);
	const auto block = test::encode(write);
	for (uint32_t i = 0; i < (1u << log_sq) - 1; i++)
		qp->post_blocks(block, false);
	for (uint32_t i = 0; i < 1u << log_rq; i++)
		qp->post_recv(Sge{});
	w.completed();
	return qp;
}

Result bad_rkey(World &w)
{
	std::unique_ptr<test::HostQp> far;
	const auto qp = full_qp(w, far);
	uint32_t left = (1u << qp->options.sq_log_size) - 1 + (1u << qp->options.rq_log_size);
	return w.measure([&] { qp->publish(); }, [&] { return !(left -= w.completed()); });
}

/** 64 QPs that always have as many requests to send as their queues can hold. @tick is called in
 * each round. */
Result flood(
        World &w, const test::SendRequest &request, const std::function<void()> &tick = [] {})
{
	constexpr unsigned kLogDepth = 4;
	std::map<uint32_t, std::unique_ptr<test::HostQp>> near;
	std::vector<std::unique_ptr<test::HostQp>> far;
	const auto block = test::encode(request);
	for (uint32_t i = 0; i < kAttackers; i++) {
		auto qp = w.make_qp(kLogDepth, kLogDepth);
		far.push_back(w.b.make_qp(kLogDepth));
		connect(w.a, *qp, w.b, *far.back());
		for (uint32_t j = 0; j < (1u << kLogDepth) - 1; j++)
			qp->post_blocks(block, false);
		const uint32_t number = qp->number;
		near[number] = std::move(qp);
	}
	int rounds = 0;
	return w.measure(
	        [&] {
		        for (const auto &[number, qp] : near)
			        qp->publish();
	        },
	        [&] {
		        tick();
		        w.completed([&](uint32_t qpn) { near.at(qpn)->post_blocks(block, true); });
		        return ++rounds == 20'000;
	        });
}

Result small_writes(World &w)
{
	test::SendRequest write{.opcode = TERN_OP_WRITE,
	                        .flags = TERN_WQE_SIGNALED | TERN_WQE_INLINE,
	                        .rkey = w.area->key};
	write.inline_data.resize(8);
	return flood(w, write);
}

Result large_writes(World &w)
{
	test::SendRequest write{
	        .opcode = TERN_OP_WRITE, .flags = TERN_WQE_SIGNALED, .rkey = w.area->key};
	write.sges = {{0, 65536, w.source->key}};
	return flood(w, write);
}

/** Messages for which the peer has no receive WQE. */
Result sends_without_receives(World &w)
{
	constexpr uint64_t kRnrTimer = 10'000; /* ns, the shortest */
	return flood(w, {.opcode = TERN_OP_SEND}, [&] { w.a.time += kRnrTimer; });
}

/** As many regions come and go as the queue of commands takes. */
Result regions_come_and_go(World &w)
{
	constexpr size_t kCommands = 16;
	auto create = test::make_command(TERN_AQ_CREATE_MR);
	create.create_mr.length = 4096;
	create.create_mr.pages = w.source->buffer.pages();
	create.create_mr.pdn = w.a.pd;
	create.create_mr.access = test::kAllAccess;
	struct Process {
		uint32_t command;
		bool creates;
	};
	std::vector<Process> processes(kCommands);
	const auto submit = [&](Process &p, const tern_hw_aq_cmd &command) {
		p.command = w.submit(command);
		p.creates = !p.creates;
	};
	int rounds = 0;
	return w.measure(
	        [&] {
		        for (Process &p : processes)
			        submit(p, create);
	        },
	        [&] {
		        for (Process &p : processes)
			        if (const auto result = w.a.driver.result(p.command))
				        submit(p, p.creates ? object(TERN_AQ_DESTROY_MR,
				                                     result->created.id.get())
				                            : create);
		        return ++rounds == 20'000;
	        });
}

/** Receives that are posted without end to 100 QPs in ERR. */
Result posts_in_error(World &w)
{
	std::vector<std::unique_ptr<test::HostQp>> qps;
	for (int i = 0; i < 100; i++) {
		qps.push_back(w.make_qp(4, 12));
		for (uint32_t j = 0; j < 1u << 12; j++)
			qps.back()->post_recv(Sge{});
		w.a.driver.status_of(modify(*qps.back(), TERN_QPS_ERR));
		w.completed();
	}
	int rounds = 0;
	return w.measure([] {},
	                 [&] {
		                 if (rounds % 64 == 0) {
			                 w.completed();
			                 w.a.time += 1'000'000;
			                 for (auto &qp : qps) {
				                 qp->rq_pi += 1u << 11;
				                 w.a.memory.put(
				                         qp->record +
				                                 offsetof(tern_hw_qp_record, rq_pi),
				                         Le<uint32_t>(qp->rq_pi));
			                 }
		                 }
		                 return ++rounds == 2'000;
	                 });
}

Result timers(World &w)
{
	std::vector<std::unique_ptr<test::HostQp>> qps;
	for (uint32_t i = 0; i < w.scaled(100'000); i++) {
		qps.push_back(w.make_qp(0, 0));
		w.a.driver.status_of(modify(*qps.back(), TERN_QPS_ERR));
	}
	w.a.time += 1'000'000'000;
	int rounds = 0;
	return w.measure([] {}, [&] { return ++rounds == 20'000; });
}

Result tag_operations(World &w)
{
	const auto srq = w.a.driver.create_srq({.pd = w.a.pd,
	                                        .cqn = w.a.cq->number,
	                                        .tags = true,
	                                        .log_tags = 10,
	                                        .log_tag_ops = 10});
	tern_hw_tag_op op{};
	for (uint32_t i = 0; i < 1024; i++) {
		op.opcode = TERN_TAG_ADD;
		op.entry = i;
		srq->post_tag_op(op, i == 1023);
	}
	w.a.driver.pump();
	for (uint32_t i = 0; i < 1024; i++) {
		op = {};
		op.opcode = TERN_TAG_DEL;
		op.entry = 1023 - i;
		srq->post_tag_op(op, false);
	}
	int rounds = 0;
	return w.measure([&] { w.a.driver.doorbell(0, TERN_DB_TAG_OPS, srq->number, srq->tag_pi); },
	                 [&] { return ++rounds == 1'000; });
}

/** Binds behind a SEND that is answered at last, by a NAK. */
Result binds(World &w)
{
	const auto qp = w.make_qp(10, 4);
	const auto far = w.b.make_qp(4);
	connect(w.a, *qp, w.b, *far);
	far->post_recv(Sge{});
	test::SendRequest bind{.opcode = TERN_OP_BIND_MW, .flags = 0};
	bind.bind.emplace();
	bind.bind->rkey = w.a.driver.alloc_mw(w.a.pd, TERN_MW_TYPE_1, 1);
	const auto block = test::encode(bind);
	qp->post_send({.opcode = TERN_OP_SEND}, false);
	for (uint32_t i = 0; i < w.scaled(8'000'000) / 512; i++) {
		for (int j = 0; j < 512; j++)
			qp->post_blocks(block, false);
		qp->publish();
		while (w.a.card.run(256)) {
		}
	}
	int rounds = 0;
	return w.measure([] {}, [&] { return ++rounds == 2'000; });
}

struct Case {
	const char *name;
	Result (*run)(World &);
};

constexpr Case kCases[] = {
        {"nothing", nothing},
        {"RESIZE_CQ to 2^22", resize_cq},
        {"DEALLOC_PD, 10^6 regions", dealloc_pd},
        {"DESTROY_QP, 10^6 regions", destroy_qp_window},
        {"DESTROY_QP, 2*10^5 windows", destroy_qp_windows},
        {"DESTROY_SRQ, 10^5 QPs", destroy_srq},
        {"DESTROY_EQ, 10^5 CQs", destroy_eq},
        {"64 QPs write 8 bytes", small_writes},
        {"64 QPs write 64 KiB", large_writes},
        {"64 QPs send without receives", sends_without_receives},
        {"regions come and go", regions_come_and_go},
        {"bad rkey, full queues", bad_rkey},
        {"posts to 100 QPs in ERR", posts_in_error},
        {"10^5 timers", timers},
        {"1024 tag operations", tag_operations},
        {"8*10^6 binds, then an ACK", binds},
};

} // namespace
} // namespace tern::bench

int main(int argc, char **argv)
{
	using namespace tern::bench;
	const auto scale = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 1u;
	std::printf("Medians of %u rounds. neighbour: another QP, which writes 8 bytes, waits, and "
	            "writes again:\nits rate, of that with nothing else, and how long a write "
	            "takes.\n\n%-28s %12s %10s %10s %10s\n",
	            kRounds, "what", "longest, us", "took, ms", "neighbour", "write, us");
	double alone = 0;
	for (const Case &c : kCases) {
		std::vector<double> longest;
		std::vector<double> took;
		std::vector<double> rate;
		std::vector<double> wait;
		for (unsigned i = 0; i < kRounds; i++) {
			World world(scale);
			const Result r = c.run(world);
			longest.push_back(r.longest);
			took.push_back(r.took / 1e3);
			rate.push_back(r.rate());
			wait.push_back(median(r.waits));
		}
		alone = alone ? alone : median(rate);
		std::printf("%-28s %12.1f %10.2f %9.0f%% %10.2f\n", c.name, median(longest),
		            median(took), 100 * median(rate) / alone, median(wait));
		std::fflush(stdout);
	}
	return 0;
}
