// SPDX-License-Identifier: GPL-2.0-or-later
#include "sampler.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <sstream>
#include <utility>

#include "top_report.h"

using namespace tern::tools;

namespace {

/* A QP of process 7 with @posted WRITEs of 100 bytes, of which @completed are completed. */
Counts::Qp qp(uint64_t posted, uint64_t completed)
{
	Counts::Qp result{.key = {.device = 0x1000, .tgid = 7, .qpn = 0x11}, .stats = {}};

	std::strcpy(result.stats.program, "writer");
	std::strcpy(result.stats.device, "tern0");
	result.stats.messages[TERN_GROUP_WRITE] = posted;
	result.stats.bytes[TERN_GROUP_WRITE] = posted * 100;
	result.stats.posted = posted;
	result.stats.completed = completed;
	result.stats.send_cqn = 5;
	result.stats.latency[tern_latency_bucket(1000)] = completed;
	return result;
}

Device device(uint64_t retransmitted)
{
	Device result{
	        .name = "tern0", .pci = "0000:01:00.0", .counters = {retransmitted}, .cqs = {}};
	result.cqs[5] = {3, 256};
	return result;
}

Counts counts(uint64_t time_ms, std::vector<Counts::Qp> qps)
{
	return {.time_ms = time_ms, .qps = std::move(qps), .devices = {device(time_ms)}};
}

TEST(Sampler, TellsOfTheInterval)
{
	Sampler sampler(counts(1000, {qp(10, 10)}));
	const Sample sample = sampler.next(counts(1500, {qp(30, 26)}));

	EXPECT_EQ(sample.interval_ms, 500u);
	ASSERT_EQ(sample.qps.size(), 1u);
	const QpSample &told = sample.qps[0];
	EXPECT_EQ(told.program, "writer");
	EXPECT_EQ(told.messages[TERN_GROUP_WRITE].total, 30u);
	EXPECT_EQ(told.messages[TERN_GROUP_WRITE].recent, 20u);
	EXPECT_EQ(told.bytes[TERN_GROUP_WRITE].recent, 2000u);
	EXPECT_EQ(told.outstanding, 4u);
	EXPECT_EQ(total(told.recent_latency), 16u);
	ASSERT_TRUE(told.send_cq);
	EXPECT_EQ(told.send_cq->depth, 3u);
	EXPECT_FALSE(told.recv_cq) << "no completion has named it";
	EXPECT_EQ(sample.devices[0].counters[0].recent, 500u);
}

TEST(Sampler, CountsNewQpsFromZero)
{
	Sampler sampler(counts(0, {}));

	EXPECT_EQ(sampler.next(counts(1, {qp(5, 5)})).qps[0].messages[TERN_GROUP_WRITE].recent, 5u);
	EXPECT_FALSE(sampler.next(counts(2, {qp(5, 5)})).qps[0].is_active());
	/* The entry was replaced by that of a new QP. */
	EXPECT_EQ(sampler.next(counts(3, {qp(2, 2)})).qps[0].messages[TERN_GROUP_WRITE].recent, 2u);
}

TEST(Sampler, IntervalsGoOnWithoutABurstAfterAPause)
{
	EXPECT_EQ(next_due(1000, 1000, 500), 1500u);
	EXPECT_EQ(next_due(1000, 1020, 500), 1500u) << "a delay does not add up";
	EXPECT_EQ(next_due(1000, 9000, 500), 9500u) << "after SIGSTOP and SIGCONT";
}

TEST(Sampler, NewDevicesHaveNoRate)
{
	Sampler sampler(Counts{});

	EXPECT_EQ(sampler.next(counts(9, {})).devices[0].counters[0].recent, 0u);
}

TEST(Sampler, ACounterThatCannotBeReadStaysAsItWas)
{
	const auto unreadable = [](uint64_t time_ms) {
		Counts result = counts(time_ms, {});
		result.devices[0].counters[0].reset();
		return result;
	};
	const auto next = [&](Sampler &sampler, const Counts &now) {
		const Counter counter = sampler.next(now).devices[0].counters[0];
		return std::pair(counter.total, counter.recent);
	};
	Sampler sampler(counts(1000, {})), late(unreadable(1000));
	using Pair = std::pair<uint64_t, uint64_t>;

	EXPECT_EQ(next(sampler, unreadable(1100)), Pair(1000, 0));
	EXPECT_EQ(next(sampler, unreadable(1200)), Pair(1000, 0));
	EXPECT_EQ(next(sampler, counts(1300, {})), Pair(1300, 300));
	EXPECT_EQ(next(late, unreadable(1100)), Pair(0, 0));
	EXPECT_EQ(next(late, counts(1200, {})), Pair(1200, 0)) << "it has no rate yet";
}

TEST(Sampler, QpsOfOneNumberHaveTheirOwnCounters)
{
	Counts::Qp ended = qp(3, 3), now = qp(9, 8);
	ended.stats.page_faults = 2;
	now.key.tgid = 8;
	now.stats.named = 1;
	now.stats.page_faults = 5;
	Sampler sampler(counts(1, {ended}));
	const Sample sample = sampler.next(counts(2, {now, ended}));

	ASSERT_EQ(sample.qps.size(), 2u);
	EXPECT_EQ(sample.qps[0].pid, 7u);
	EXPECT_EQ(sample.qps[0].page_faults.total, 2u);
	EXPECT_EQ(sample.qps[0].page_faults.recent, 0u);
	EXPECT_EQ(sample.qps[0].outstanding, 0u);
	EXPECT_EQ(sample.qps[1].pid, 8u);
	EXPECT_EQ(sample.qps[1].page_faults.total, 5u);
	EXPECT_EQ(sample.qps[1].page_faults.recent, 5u);
	EXPECT_EQ(sample.qps[1].outstanding, 1u);
}

/* The process has another address of the device's name since the device was registered anew. */
TEST(Sampler, MergesQpsThatTheOutputsCannotTellApart)
{
	Counts::Qp ended = qp(3, 3), now = qp(9, 8);
	ended.stats.send_cqn = 6;
	ended.stats.page_faults = 1;
	now.key.device = 0x2000;
	now.stats.named = 1;
	now.stats.page_faults = 2;

	for (const auto &all : {std::vector{ended, now}, std::vector{now, ended}}) {
		Sampler sampler(counts(1, {qp(2, 2)}));
		Counts merged = counts(2, all);
		merged.devices[0].cqs[6] = {7, 256};
		const Sample sample = sampler.next(merged);

		ASSERT_EQ(sample.qps.size(), 1u);
		const QpSample &told = sample.qps[0];
		EXPECT_EQ(told.messages[TERN_GROUP_WRITE].total, 12u);
		EXPECT_EQ(told.messages[TERN_GROUP_WRITE].recent, 10u);
		EXPECT_EQ(told.bytes[TERN_GROUP_WRITE].total, 1200u);
		EXPECT_EQ(told.page_faults.total, 3u);
		EXPECT_EQ(told.outstanding, 1u);
		EXPECT_EQ(total(told.latency), 11u);
		EXPECT_EQ(total(told.recent_latency), 9u);
		ASSERT_TRUE(told.send_cq);
		EXPECT_EQ(told.send_cq->depth, 3u) << "the queue of the QP that exists";
	}
}

/* Each line of a page but comments begins with name and labels; the value follows the last space.
 */
std::vector<std::string> series(const std::string &page)
{
	std::istringstream lines(page);
	std::vector<std::string> result;

	for (std::string line; std::getline(lines, line);)
		if (!line.starts_with('#'))
			result.push_back(line.substr(0, line.rfind(' ')));
	return result;
}

TEST(Sampler, NoSeriesOfPrometheusIsThereTwice)
{
	Counts::Qp again = qp(9, 8), other = qp(4, 4), renamed = qp(5, 5);
	again.key.device = 0x2000;
	other.key.tgid = 8;
	renamed.key.device = 0x3000;
	std::strcpy(renamed.stats.program, "wr\x01ter");
	Counts::Qp like_renamed = renamed;
	like_renamed.key.device = 0x4000;
	std::strcpy(like_renamed.stats.program, "wr\x02ter"); /* both are printed as "wr?ter" */

	Sampler sampler(Counts{});
	const Sample sample =
	        sampler.next(counts(1, {qp(3, 3), again, other, renamed, like_renamed}));
	std::vector<std::string> all = series(to_prometheus(sample));
	EXPECT_EQ(sample.qps.size(), 3u);
	std::ranges::sort(all);
	const auto twice = std::ranges::adjacent_find(all);
	EXPECT_EQ(twice, all.end()) << *twice;
}

} // namespace
