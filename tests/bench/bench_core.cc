// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the core costs. Both cards, and the programs as far as they post and poll, run on the one
 * core that is measured: a card's own share of a message is about half of what is told here.
 */
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include "tests/bench/table.h"
#include "tests/bench/two_cards.h"

namespace tern::bench {
namespace {

using namespace hw;

constexpr uint64_t kArea = 64 << 20;
constexpr unsigned kLogDepth = 6;

/** What a benchmark measures, by which its cards can be kept from one run to the next. */
struct Setup {
	Job job;
	bool whole = false; /* frames with ICRC, as on a cable */
	unsigned log_depth = kLogDepth;
	unsigned page_shift = 21;
	uint32_t qps = 1;
	uint32_t regions = 1;
	uint32_t batch = 0; /* outstanding at a time; 0: as many as may be */

	bool operator==(const Setup &) const = default;
};

TwoCards &cards(const Setup &setup)
{
	static std::unique_ptr<TwoCards> kept;
	static std::optional<Setup> what;
	if (what == setup)
		return *kept;
	kept.reset();
	kept = std::make_unique<TwoCards>(kArea, setup.log_depth, setup.page_shift, setup.qps);
	kept->a.borrows = kept->b.borrows = !setup.whole;
	if (setup.regions == 1)
		kept->prepare(setup.job);
	else
		kept->prepare(setup.job, kept->make_regions(setup.regions));
	what = setup;
	return *kept;
}

/** Seconds of the processor that memcpy takes for one message. */
double copy_time(TwoCards &cards, uint64_t count)
{
	const std::clock_t begin = std::clock();
	cards.copy(static_cast<uint32_t>(count));
	return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC /
	       static_cast<double>(count);
}

/** Each iteration is as many messages as may be outstanding; the QPs take turns. */
void measure(benchmark::State &state, const Setup &setup, bool all_qps = false)
{
	TwoCards &two = cards(setup);
	const uint32_t batch = setup.batch ? setup.batch : 1u << setup.log_depth;
	uint32_t qp = 0;
	for (auto _ : state) {
		two.perform(qp, batch);
		if (all_qps)
			qp = (qp + 1) % setup.qps;
	}
	const auto messages = static_cast<uint64_t>(state.iterations()) * batch;
	const uint64_t copies = std::clamp<uint64_t>(messages, 1, (1 << 30) / setup.job.size + 1);
	state.SetItemsProcessed(static_cast<int64_t>(messages));
	state.SetBytesProcessed(static_cast<int64_t>(messages * setup.job.size));
	state.counters["copy"] = 1 / copy_time(two, copies);
}

std::string size_name(uint64_t n)
{
	constexpr uint64_t kMi = 1 << 20;
	return n >= kMi    ? std::to_string(n / kMi) + "Mi"
	       : n >= 1024 ? std::to_string(n / 1024) + "Ki"
	                   : std::to_string(n);
}

/** As many places as the area has; @hot: one. */
Job job(tern_hw_wqe_op opcode, uint32_t size, bool hot = false)
{
	return {.opcode = static_cast<uint8_t>(opcode),
	        .size = size,
	        .slots = hot ? 1 : static_cast<uint32_t>(kArea / size)};
}

void add(const std::string &name, const Setup &setup, bool all_qps = false)
{
	benchmark::RegisterBenchmark(name.c_str(), [setup, all_qps](benchmark::State &state) {
		measure(state, setup, all_qps);
	});
}

constexpr uint32_t kSizes[] = {8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};

void add_sizes(const std::string &name, tern_hw_wqe_op opcode, bool whole)
{
	for (const uint32_t size : kSizes) {
		/* The ring is longer than what is outstanding, so that the data is too much for
		 * the caches when it is large. */
		add(name + "/" + size_name(size), {.job = job(opcode, size),
		                                   .whole = whole,
		                                   .log_depth = 10,
		                                   .batch = size > 16 << 10 ? 16u : 64u});
	}
}

void add_all()
{
	Job inline_write = job(TERN_OP_WRITE, 8);
	inline_write.flags |= TERN_WQE_INLINE;
	add("write inline/8", {.job = inline_write});
	add_sizes("write", TERN_OP_WRITE, false);
	add_sizes("read", TERN_OP_READ, false);
	add_sizes("send", TERN_OP_SEND, false);
	add("fetch-add/8", {.job = job(TERN_OP_FETCH_ADD, 8)});
	add("compare-swap/8", {.job = job(TERN_OP_CMP_SWAP, 8)});
	add_sizes("write, whole frames", TERN_OP_WRITE, true);
	add("write, in 1Mi of memory/64Ki", {.job = job(TERN_OP_WRITE, 64 << 10), .log_depth = 4});
	add("write, one place/64Ki", {.job = job(TERN_OP_WRITE, 64 << 10, true), .log_depth = 4});
	add("write, 4Ki pages/64Ki",
	    {.job = job(TERN_OP_WRITE, 64 << 10), .log_depth = 10, .page_shift = 12, .batch = 16});
	for (const uint32_t qps : {1u, 64u, 1024u, 16384u, 65536u})
		add("QPs, one busy/" + size_name(qps),
		    {.job = inline_write, .log_depth = 4, .qps = qps});
	for (const uint32_t qps : {1u, 64u, 1024u, 16384u, 65536u})
		add("QPs, in turn/" + size_name(qps),
		    {.job = inline_write, .log_depth = 4, .qps = qps}, true);
	for (const uint32_t regions : {1u, 1000u, 100'000u, 1'000'000u})
		add("regions, in turn/" + std::to_string(regions),
		    {.job = inline_write, .log_depth = 16, .regions = regions, .batch = 64});
	for (const unsigned log_depth : {0u, 2u, 4u, 6u, 8u, 10u})
		add("outstanding/" + std::to_string(1u << log_depth),
		    {.job = inline_write, .log_depth = log_depth});
}

} // namespace
} // namespace tern::bench

int main(int argc, char **argv)
{
	tern::bench::add_all();
	benchmark::Initialize(&argc, argv);
	if (benchmark::ReportUnrecognizedArguments(argc, argv))
		return 1;
	tern::bench::Table table;
	const size_t run = benchmark::RunSpecifiedBenchmarks(&table);
	benchmark::Shutdown();
	return run && !table.failed() ? 0 : 1;
}
