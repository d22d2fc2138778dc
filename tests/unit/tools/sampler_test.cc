// SPDX-License-Identifier: GPL-2.0-or-later
#include "sampler.h"

#include <cstring>
#include <gtest/gtest.h>
#include <utility>

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
	return {.time_ms = time_ms,
	        .qps = std::move(qps),
	        .faults = {},
	        .devices = {device(time_ms)}};
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

TEST(Sampler, PageFaultsAreOfTheDevice)
{
	Counts now = counts(1, {qp(1, 1)});
	now.faults.push_back({.key = {.pci = "0000:02:00.0", .qpn = 0x11, .rsvd = 0}, .number = 9});
	now.faults.push_back({.key = {.pci = "0000:01:00.0", .qpn = 0x11, .rsvd = 0}, .number = 2});
	Sampler sampler(Counts{});

	EXPECT_EQ(sampler.next(now).qps[0].page_faults.total, 2u);
}

} // namespace
