// SPDX-License-Identifier: GPL-2.0-or-later
/* Atomics from several QPs of both hosts on the same words. */
#include <cstring>

#include "cases.h"

namespace tern::guest {
namespace {

constexpr size_t kWords = 2; /* 0: sums, 1: compare and swap */

uint64_t word(const Buffer &buffer, size_t n)
{
	return reinterpret_cast<volatile uint64_t *>(buffer.data())[n];
}

/*
 * Each side adds to and swaps a word of the other, over several QPs at once. What each request
 * brings back must be a value that the word had, none of them twice.
 */
void atomics(Session &s)
{
	constexpr unsigned kQps = 4, kRounds = 200;
	std::vector<std::unique_ptr<Endpoint>> eps;
	const Buffer counters(s.device, kWords * 8), results(s.device, kQps * 8);

	for (unsigned i = 0; i < kQps; i++) {
		eps.push_back(std::make_unique<Endpoint>(s));
		eps.back()->connect();
	}
	const RemoteBuffer remote = eps[0]->exchange(counters);
	s.peer.barrier(1);

	std::vector<bool> seen(kQps * kRounds);
	for (unsigned round = 0; round < kRounds; round++) {
		for (unsigned i = 0; i < kQps; i++)
			eps[i]->fetch_add(round, results.sge(8 * i, 8), remote, 0, 1);
		for (unsigned i = 0; i < kQps; i++) {
			const ibv_wc wc = eps[i]->expect_send(round);
			check(wc.opcode == IBV_WC_FETCH_ADD, "opcode of fetch and add");
			const uint64_t before = word(results, i);
			check(before < seen.size() && !seen[before],
			      "fetch and add brought %lu, %s", before,
			      before < seen.size() ? "a second time" : "which it never was");
			seen[before] = true;
		}
	}

	/* Each QP counts the word up by compare and swap, trying again when another was first. */
	std::vector<uint64_t> guess(kQps, 0), done(kQps, 0);
	for (unsigned left = kQps; left;) {
		for (unsigned i = 0; i < kQps; i++)
			if (done[i] < kRounds / 10)
				eps[i]->cmp_swap(i, results.sge(8 * i, 8), remote, 8, guess[i],
				                 guess[i] + 1);
		for (unsigned i = 0; i < kQps; i++) {
			if (done[i] >= kRounds / 10)
				continue;
			check(eps[i]->expect_send(i).opcode == IBV_WC_COMP_SWAP,
			      "opcode of compare and swap");
			const uint64_t before = word(results, i);
			const bool swapped = before == guess[i];
			guess[i] = swapped ? before + 1 : before;
			if (swapped && ++done[i] == kRounds / 10)
				left--;
		}
	}
	s.peer.barrier(2);
	check(word(counters, 0) == kQps * kRounds, "the sum is %lu, not %u", word(counters, 0),
	      kQps * kRounds);
	check(word(counters, 1) == kQps * (kRounds / 10), "the swapped word is %lu, not %u",
	      word(counters, 1), kQps * (kRounds / 10));
}

/*
 * The same word through two contexts, as two processes have them that share memory. Cards may
 * serve each by an engine of its own.
 */
void atomics_of_contexts(Session &s)
{
	constexpr unsigned kBatch = 8, kRounds = 250;
	Device second(ibv_get_device_name(s.device.context()->device), s.device.gid_index());
	Session other{.device = second,
	              .peer = s.peer,
	              .active = s.active,
	              .async_events = s.async_events,
	              .seed = s.seed,
	              .seconds = s.seconds,
	              .interval = s.interval,
	              .timeout = s.timeout,
	              .qps = s.qps,
	              .required_mtu = s.required_mtu};
	const Buffer counter(s.device, 8);
	const MrPtr counter_there(
	        ibv_reg_mr(second.pd(), counter.data(), counter.size(), kAllAccess));
	check(counter_there != nullptr, "a second region of the same memory is refused");
	const Buffer results[] = {{s.device, kBatch * 8}, {second, kBatch * 8}};
	Endpoint ends[] = {Endpoint(s), Endpoint(other)};
	for (Endpoint &end : ends)
		end.connect();
	const RemoteBuffer remote[] = {
	        ends[0].exchange(counter),
	        s.peer.exchange(RemoteBuffer{counter.addr(), counter.size(), counter_there->rkey})};
	s.peer.barrier(1);

	std::vector<bool> seen(2 * kBatch * kRounds);
	for (unsigned round = 0; round < kRounds; round++) {
		for (unsigned i = 0; i < kBatch; i++)
			for (unsigned e = 0; e < 2; e++)
				ends[e].fetch_add(i, results[e].sge(8 * i, 8), remote[e], 0, 1);
		for (unsigned i = 0; i < 2 * kBatch; i++) {
			ends[i % 2].expect_send(i / 2);
			const uint64_t before = word(results[i % 2], i / 2);
			check(before < seen.size() && !seen[before],
			      "fetch and add brought %lu, which was another's or none", before);
			seen[before] = true;
		}
	}
	s.peer.barrier(2);
	check(word(counter, 0) == seen.size(), "the sum is %lu, not %zu", word(counter, 0),
	      seen.size());
}

constexpr Case kCases[] = {
        {"atomics", "fetch and add, compare and swap from both hosts", atomics},
        {"atomics-of-contexts", "fetch and add through two contexts", atomics_of_contexts},
};

} // namespace

std::span<const Case> atomic_cases()
{
	return kCases;
}

} // namespace tern::guest
