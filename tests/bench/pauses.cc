// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long a QP waits while its card does one long thing that somebody asked for: admin commands,
 * flushes, timers. A neighbour writes 8 bytes again and again meanwhile, and waits for each write.
 * The longest pause is the longest single call of a card. fairness.cc measures those who never end.
 */
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/bench/world.h"

namespace tern::bench {
namespace {

using namespace hw;

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
        {"bad rkey, full queues", bad_rkey},
        {"10^5 timers", timers},
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
