// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What 64 attackers that never end leave to a neighbour. It has two programs, measured one after
 * the other: one writes 8 bytes, waits, and writes again; the other always has writes of 64 KiB to
 * send. The fair share of bandwidth is what the neighbour has alone, divided by the number of those
 * who want the card: the attackers and the neighbour.
 *
 * At full scale the program fails if a row misses its aim. At a smaller one it fails only if the
 * neighbour's writes fail or an attack does nothing.
 */
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "tests/bench/world.h"

namespace tern::bench {
namespace {

using namespace hw;

constexpr uint32_t kAttackers = 64;
/* Commands that the engine in QEMU takes from its vCPUs before it works again. */
constexpr unsigned kDoorbells = 16;
constexpr uint32_t kTurns = 20'000;
constexpr uint8_t kRecv = 0x80; /* in the opcode of the CQE of a receive */

/** Counts turns, fewer at a smaller scale. */
class Turns {
public:
	Turns(const World &w, uint32_t count) : left_(std::max(w.scaled(count), kFewest)) {}
	bool over() { return !--left_; }

private:
	static constexpr uint32_t kFewest = 1'000;

	uint32_t left_;
};

Result nothing(World &w)
{
	Turns turns(w, kTurns);
	Result r = w.measure([] {}, [&] { return turns.over(); });
	r.work = r.writes;
	return r;
}

struct Pair {
	std::unique_ptr<test::HostQp> near;
	std::unique_ptr<test::HostQp> far;
};

/** QPs by number, each connected to one of the other host. */
using Pairs = std::map<uint32_t, Pair>;

Pairs make_pairs(World &w, unsigned log_sq, unsigned log_rq)
{
	Pairs pairs;
	for (uint32_t i = 0; i < kAttackers; i++) {
		Pair p{w.make_qp(log_sq, log_rq), w.b.make_qp(4)};
		connect(w.a, *p.near, w.b, *p.far);
		const uint32_t number = p.near->number;
		pairs[number] = std::move(p);
	}
	return pairs;
}

/** QPs that always have as many requests to send as their queues can hold. @tick is called in each
 * round. */
Result flood(
        World &w, const Pairs &pairs, const test::SendRequest &request,
        const std::function<void()> &tick = [] {})
{
	const auto block = test::encode(request);
	for (const auto &[number, p] : pairs)
		for (uint32_t i = 1; i < 1u << p.near->options.sq_log_size; i++)
			p.near->post_blocks(block, false);
	Turns turns(w, kTurns);
	uint64_t work = 0;
	Result r = w.measure(
	        [&] {
		        for (const auto &[number, p] : pairs)
			        p.near->publish();
	        },
	        [&] {
		        tick();
		        work += w.completed([&](const tern_hw_cqe &cqe) {
			        pairs.at(cqe.qpn.get()).near->post_blocks(block, true);
		        });
		        return turns.over();
	        });
	r.work = work;
	return r;
}

test::SendRequest small_write(World &w)
{
	test::SendRequest write{.opcode = TERN_OP_WRITE,
	                        .flags = TERN_WQE_SIGNALED | TERN_WQE_INLINE,
	                        .rkey = w.area->key};
	write.inline_data.resize(8);
	return write;
}

test::SendRequest large_write(World &w)
{
	return {.opcode = TERN_OP_WRITE,
	        .flags = TERN_WQE_SIGNALED,
	        .rkey = w.area->key,
	        .sges = {{0, 65536, w.source->key}}};
}

Result small_writes(World &w)
{
	return flood(w, make_pairs(w, 4, 4), small_write(w));
}

Result large_writes(World &w)
{
	return flood(w, make_pairs(w, 4, 4), large_write(w));
}

/** Messages for which the peer has no receive WQE: they never complete. */
Result sends_without_receives(World &w)
{
	constexpr uint64_t kRnrTimer = 10'000; /* ns, the shortest */
	const uint64_t before = w.a.driver.stat(TERN_STAT_REQ_RX_RNR_NAK);
	Result r = flood(w, make_pairs(w, 4, 4), {.opcode = TERN_OP_SEND},
	                 [&] { w.a.time += kRnrTimer; });
	r.work = w.a.driver.stat(TERN_STAT_REQ_RX_RNR_NAK) - before;
	return r;
}

/** Sends and receives that are posted without end to QPs in ERR. */
Result flushes(World &w)
{
	constexpr unsigned kLogDepth = 10;
	constexpr uint64_t kRound = 5'000; /* ns; receive queues in ERR are looked at by time */
	const Pairs pairs = make_pairs(w, kLogDepth, kLogDepth);
	for (const auto &[number, p] : pairs) {
		w.a.driver.status_of(modify(*p.near, TERN_QPS_ERR));
		for (uint32_t i = 0; i < 1u << kLogDepth; i++)
			p.near->post_recv(Sge{});
	}
	const auto block = test::encode({.opcode = TERN_OP_SEND});
	w.completed();
	for (const auto &[number, p] : pairs)
		for (uint32_t i = 1; i < 1u << kLogDepth; i++)
			p.near->post_blocks(block, false);
	Turns turns(w, kTurns);
	uint64_t work = 0;
	Result r = w.measure(
	        [&] {
		        for (const auto &[number, p] : pairs)
			        p.near->publish();
	        },
	        [&] {
		        w.a.time += kRound;
		        work += w.completed([&](const tern_hw_cqe &cqe) {
			        test::HostQp &qp = *pairs.at(cqe.qpn.get()).near;
			        if (cqe.opcode & kRecv)
				        qp.post_recv(Sge{});
			        else
				        qp.post_blocks(block, true);
		        });
		        return turns.over();
	        });
	r.work = work;
	return r;
}

/** Full queues behind a request that the peer refuses. */
Result bad_rkeys(World &w)
{
	const unsigned log_depth = w.log_scaled(12);
	const Pairs pairs = make_pairs(w, log_depth, log_depth);
	test::SendRequest write{.opcode = TERN_OP_WRITE, .flags = TERN_WQE_INLINE, .rkey = 0x100};
	write.inline_data.resize(8);
	const auto block = test::encode(write);
	uint64_t posted = 0;
	for (const auto &[number, p] : pairs) {
		for (uint32_t i = 1; i < 1u << log_depth; i++, posted++)
			p.near->post_blocks(block, false);
		for (uint32_t i = 0; i < 1u << log_depth; i++, posted++)
			p.near->post_recv(Sge{});
	}
	w.completed();
	uint64_t flushed = 0;
	Result r = w.measure(
	        [&] {
		        for (const auto &[number, p] : pairs)
			        p.near->publish();
	        },
	        [&] {
		        flushed += w.completed();
		        return flushed == posted;
	        });
	r.work = flushed;
	return r;
}

/** Processes that each have one admin command outstanding. */
class Commanders {
public:
	/** @next: the next command of process @i, whose last one had @result. */
	using Next = std::function<tern_hw_aq_cmd(uint32_t i, const tern_hw_aq_cqe *result)>;

	Commanders(World &w, Next next) : w_(w), next_(std::move(next)) {}

	void start()
	{
		for (uint32_t i = 0; i < kAttackers; i++)
			commands_[i] = w_.submit(next_(i, nullptr));
	}
	/** Submits what follows on those that have completed, @most of them. */
	void go_on(uint64_t most = kAttackers)
	{
		for (uint32_t i = 0; i < kAttackers && most; i++) {
			const auto result = w_.a.driver.result(commands_[i]);
			if (!result)
				continue;
			commands_[i] = w_.submit(next_(i, &*result));
			done++;
			most--;
		}
	}

	uint64_t done = 0;

private:
	World &w_;
	const Next next_;
	std::array<uint32_t, kAttackers> commands_{};
};

Result command(World &w, const Commanders::Next &next)
{
	Commanders processes(w, next);
	Turns turns(w, kTurns);
	Result r = w.measure([&] { processes.start(); },
	                     [&] {
		                     processes.go_on();
		                     return turns.over();
	                     });
	r.work = processes.done;
	return r;
}

/** Regions of 4 KiB that come and go: one command after the other. */
Commanders::Next come_and_go(World &w)
{
	auto create = test::make_command(TERN_AQ_CREATE_MR);
	create.create_mr.length = 4096;
	create.create_mr.pages = w.source->buffer.pages();
	create.create_mr.pdn = w.a.pd;
	create.create_mr.access = test::kAllAccess;
	return [create, regions = std::array<bool, kAttackers>()](
	               uint32_t i, const tern_hw_aq_cqe *result) mutable {
		regions[i] = !regions[i];
		return regions[i] ? create : object(TERN_AQ_DESTROY_MR, result->created.id.get());
	};
}

Result regions_come_and_go(World &w)
{
	return command(w, come_and_go(w));
}

/** ... so many a second. */
constexpr double kPace = 10'000;

Result paced_regions(World &w)
{
	Commanders processes(w, come_and_go(w));
	Turns turns(w, 20 * kTurns);
	Result r = w.measure([&] { processes.start(); },
	                     [&] {
		                     /* Two commands for each region. */
		                     const double due = 2 * kPace * w.now() / 1e6;
		                     if (static_cast<double>(processes.done) < due)
			                     processes.go_on(static_cast<uint64_t>(due) + 1 -
			                                     processes.done);
		                     return turns.over();
	                     });
	r.work = processes.done / 2;
	return r;
}

Result tag_operations(World &w)
{
	constexpr uint32_t kTags = 1u << 10;
	std::vector<std::unique_ptr<test::HostSrq>> srqs;
	const auto cq = w.a.driver.create_cq(w.eq, 10, 0, {1, 12});
	for (uint32_t i = 0; i < kAttackers; i++)
		srqs.push_back(w.a.driver.create_srq({.pd = w.a.pd,
		                                      .cqn = cq->number,
		                                      .tags = true,
		                                      .log_tags = 10,
		                                      .log_tag_ops = 10,
		                                      .layout = {2, 12}}));
	/* Adds all tags, then deletes them, the last first. */
	const auto post = [&](test::HostSrq &srq, bool add) {
		for (uint32_t i = 0; i < kTags; i++) {
			tern_hw_tag_op op{};
			op.opcode = add ? TERN_TAG_ADD : TERN_TAG_DEL;
			op.entry = add ? i : kTags - 1 - i;
			srq.post_tag_op(op, false);
		}
	};
	const auto ring = [&](const test::HostSrq &srq) {
		w.a.driver.doorbell(0, TERN_DB_TAG_OPS, srq.number, srq.tag_pi);
	};
	for (const auto &srq : srqs) {
		post(*srq, true);
		ring(*srq);
		w.a.driver.pump();
		post(*srq, false);
	}
	Turns turns(w, kTurns / 4);
	Result r = w.measure(
	        [&] {
		        for (const auto &srq : srqs)
			        ring(*srq);
	        },
	        [&] { return turns.over(); });
	r.work = uint64_t{kAttackers} * kTags;
	return r;
}

/** Processes whose vCPUs do nothing but ring, as many doorbells as the engine takes in a round. */
Result doorbell_loops(World &w)
{
	const Pairs pairs = make_pairs(w, 4, 4);
	Turns turns(w, kTurns);
	uint64_t rung = 0;
	Result r = w.measure([] {},
	                     [&] {
		                     w.timed([&] {
			                     auto next = pairs.begin();
			                     for (unsigned i = 0; i < kDoorbells; i++, ++next) {
				                     if (next == pairs.end())
					                     next = pairs.begin();
				                     w.a.driver.doorbell(0, TERN_DB_SQ, next->first,
				                                         0);
			                     }
		                     });
		                     rung += kDoorbells;
		                     return turns.over();
	                     });
	r.work = rung;
	return r;
}

/** Processes that take all the windows that they can get, and go on asking. */
Result windows_run_out(World &w)
{
	std::vector<tern_hw_aq_cmd> alloc;
	for (uint32_t i = 0; i < kAttackers; i++) {
		const uint32_t pd =
		        w.a.driver.command(object(TERN_AQ_ALLOC_PD, 1 + i)).created.id.get();
		auto c = test::make_command(TERN_AQ_ALLOC_MW);
		c.alloc_mw.pdn = pd;
		c.alloc_mw.type = TERN_MW_TYPE_2;
		alloc.push_back(c);
	}
	const uint32_t most = w.scaled(1'100'000) / kAttackers;
	for (const auto &c : alloc)
		for (uint32_t i = 0; i < most && w.a.driver.status_of(c) == TERN_AQ_OK; i++) {
		}
	return command(w, [&](uint32_t i, const tern_hw_aq_cqe *) { return alloc[i]; });
}

/** CQs that are moved from one ring of 2^20 CQEs to another and back. */
Result cqs_are_resized(World &w)
{
	const unsigned log_size = w.log_scaled(20);
	std::vector<std::unique_ptr<test::HostCq>> cqs;
	for (uint32_t i = 0; i < kAttackers; i++)
		cqs.push_back(w.a.driver.create_cq(w.eq, 4, 0, {1, 12}));
	/* All share the rings, which remain empty. */
	auto c = test::make_command(TERN_AQ_RESIZE_CQ);
	c.resize_cq.pages.iova = w.a.memory.alloc(sizeof(tern_hw_cqe) << log_size, 4096);
	c.resize_cq.record = w.a.memory.alloc(64);
	touch(w.a.memory, c.resize_cq.pages.iova.get(), sizeof(tern_hw_cqe) << log_size);
	std::array<bool, kAttackers> smaller{};
	return command(w, [&](uint32_t i, const tern_hw_aq_cqe *) {
		smaller[i] = !smaller[i];
		c.resize_cq.cqn = cqs[i]->number;
		c.resize_cq.log_size = static_cast<uint8_t>(log_size - smaller[i]);
		return c;
	});
}

/** QPs that write to a peer whose ring has room now and then only. */
Result slow_peer(World &w)
{
	constexpr int kTurnsFull = 64;
	constexpr uint32_t kRoom = 16;
	const Mac mac{2, 0, 0, 0, 0, 9};
	w.a.slow_peer = mac;
	Pairs pairs;
	for (uint32_t i = 0; i < kAttackers; i++) {
		auto qp = w.make_qp(4, 4, TERN_QPT_UC);
		test::Connection path;
		path.mtu = 5; /* 4096 */
		path.dest_qpn = 0x1234;
		path.dgid = w.b.gid;
		path.dmac = mac;
		qp->connect(path);
		const uint32_t number = qp->number;
		pairs[number].near = std::move(qp);
	}
	int turn = 0;
	uint64_t taken = 0;
	w.a.slow_room = kRoom;
	Result r = flood(w, pairs, large_write(w), [&] {
		if (++turn % kTurnsFull == 0) {
			taken += kRoom - w.a.slow_room;
			w.a.slow_room = kRoom;
			w.a.card.wire_ready(Host::kSlow);
		}
	});
	r.work = taken;
	return r;
}

struct Case {
	const char *name;
	Result (*run)(World &);
	double latency;   /* of a write of 8 bytes: at most so many times that of one alone */
	double bandwidth; /* of writes of 64 KiB: at least so much of what one has alone */
};

constexpr double kLatency = 3;
constexpr double kHalfOfFairShare = 0.5 / (kAttackers + 1);
constexpr double kUninvolved = 0.8;

/* Issue 15 asks for the former group, issue 13 for the latter. */
constexpr Case kCases[] = {
        {"write 8 bytes", small_writes, kLatency, kHalfOfFairShare},
        {"write 64 KiB", large_writes, kLatency, kHalfOfFairShare},
        {"post in ERR", flushes, kLatency, kHalfOfFairShare},
        {"send without receives", sends_without_receives, kLatency, kHalfOfFairShare},
        {"use bad rkeys", bad_rkeys, kLatency, kHalfOfFairShare},
        {"register and deregister", regions_come_and_go, kLatency, kHalfOfFairShare},
        {"change tag lists", tag_operations, kLatency, kHalfOfFairShare},
        {"ring doorbells", doorbell_loops, kLatency, kHalfOfFairShare},
        {"take all windows", windows_run_out, kLatency, kHalfOfFairShare},
        {"resize CQs", cqs_are_resized, kLatency, kUninvolved},
        {"write to a slow peer", slow_peer, kLatency, kUninvolved},
        {"... 10,000 regions a second", paced_regions, kLatency, kUninvolved},
};

struct Row {
	double wait;      /* us */
	double bandwidth; /* MiB/s */
	double attacks;   /* each second, beside the neighbour with 64 KiB */
};

/** Throws if nothing was done. */
Row measure(Result (*run)(World &), uint32_t scale)
{
	std::vector<double> wait;
	std::vector<double> bandwidth;
	std::vector<double> attacks;
	for (unsigned i = 0; i < kRounds; i++) {
		World small(scale, Neighbour::kLatency);
		const Result latency = run(small);
		World large(scale, Neighbour::kBandwidth);
		const Result r = run(large);
		if (!latency.writes || !latency.work || !r.writes || !r.work)
			throw std::logic_error("an attack or the neighbour did nothing");
		wait.push_back(median(latency.waits));
		bandwidth.push_back(r.rate() * 1e6 / 16);
		attacks.push_back(static_cast<double>(r.work) * 1e6 / r.took);
	}
	return {median(wait), median(bandwidth), median(attacks)};
}

const char *verdict(bool meets, bool judge)
{
	return !judge ? "" : meets ? "MEETS" : "MISSES";
}

} // namespace
} // namespace tern::bench

int main(int argc, char **argv)
{
	using namespace tern::bench;
	const auto scale = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 1u;
	const bool judge = scale == 1;
	const Row alone = measure(nothing, scale);
	std::printf("A neighbour beside %u attackers, medians of %u rounds, in the time of the "
	            "cards. Alone a write\nof 8 bytes takes %.2f us, and writes of 64 KiB have "
	            "%.0f MiB/s; the fair share is %.1f %% of it.\n\n"
	            "%-28s %11s %7s %6s %12s %8s %7s\n",
	            kAttackers, kRounds, alone.wait, alone.bandwidth, 100.0 / (kAttackers + 1),
	            "attackers", "attacks/s", "8 B", "", "64 KiB", "", "");
	bool meets = true;
	for (const Case &c : kCases) {
		std::printf("%-28s ", c.name);
		const Row row = measure(c.run, scale);
		const double times = row.wait / alone.wait;
		const double part = row.bandwidth / alone.bandwidth;
		const bool latency_meets = times <= c.latency;
		const bool bandwidth_meets = part >= c.bandwidth;
		std::printf("%11.0f %6.1fx %6s %10.1f %% %7.1f %% %s\n", row.attacks, times,
		            verdict(latency_meets, judge), 100 * part, 100 * c.bandwidth,
		            verdict(bandwidth_meets, judge));
		std::fflush(stdout);
		meets = meets && latency_meets && bandwidth_meets;
	}
	return judge && !meets ? EXIT_FAILURE : EXIT_SUCCESS;
}
