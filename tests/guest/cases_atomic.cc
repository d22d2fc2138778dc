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

constexpr Case kCases[] = {
        {"atomics", "fetch and add, compare and swap from both hosts", atomics},
};

} // namespace

std::span<const Case> atomic_cases()
{
	return kCases;
}

} // namespace tern::guest
