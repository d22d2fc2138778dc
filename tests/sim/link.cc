// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/link.h"

#include <algorithm>

namespace tern::sim {

uint64_t Link::Loan::bytes() const
{
	uint64_t sum = 0;
	for (const HostRange &range : payload)
		sum += range.size;
	return sum;
}

bool Link::queue(Frame frame, Loan loan)
{
	if (queued_ >= config.queue) {
		counts_.refused++;
		refused_ = true;
		return false;
	}
	counts_.sent++;
	queued_++;
	const uint64_t bytes = frame.size() + loan.bytes();
	busy_until_ = std::max(busy_until_, loop_.now()) + bytes * config.ns_per_kib / 1024;
	Parcel parcel{std::move(frame), std::move(loan), recalls_};
	loop_.at(busy_until_,
	         [this, parcel = std::move(parcel)]() mutable { depart(std::move(parcel)); });
	return true;
}

Wire::Lend Link::lend(std::span<const std::byte> head, std::span<const HostRange> payload,
                      uint32_t segment)
{
	if (!config.borrow || !borrows() || !rng_.chance(config.borrow, 1000) ||
	    (segment && !rng_.chance(config.bursts, 1000)))
		return Wire::Lend::Refused;
	if (!queue({head.begin(), head.end()}, {true, {payload.begin(), payload.end()}, segment}))
		return Wire::Lend::Full;
	counts_.lent++;
	return Wire::Lend::Done;
}

/* The last bit has left: there is room for another frame. */
void Link::depart(Parcel parcel)
{
	queued_--;
	const Faults &f = config.faults;
	if (rng_.chance(f.loss, 1000)) {
		counts_.lost++;
	} else {
		if (rng_.chance(f.duplicate, 1000)) {
			counts_.duplicated++;
			travel(parcel);
		}
		if (rng_.chance(f.corrupt, 1000))
			corrupt(parcel);
		if (!parcel.frame.empty())
			travel(std::move(parcel));
	}
	if (refused_ && on_room) {
		refused_ = false;
		on_room();
	}
}

/* Memory does not err so, and a loan has no ICRC that would tell: it gets lost. */
void Link::corrupt(Parcel &parcel)
{
	if (parcel.loan.lent) {
		counts_.lost++;
		parcel.frame.clear();
		return;
	}
	counts_.corrupted++;
	parcel.frame[rng_.below(parcel.frame.size())] ^= static_cast<std::byte>(1 << rng_.below(8));
}

void Link::travel(Parcel parcel)
{
	uint64_t delay = config.latency;
	if (rng_.chance(config.faults.reorder, 1000)) {
		counts_.reordered++;
		delay += rng_.between(1, config.max_reorder);
	}
	loop_.after(delay, [this, parcel = std::move(parcel)] { arrive(parcel); });
}

void Link::arrive(const Parcel &parcel)
{
	/* Of what is all in the frame nothing can be taken back. */
	if (!parcel.loan.payload.empty() && (parcel.recalls != recalls_ || !borrows())) {
		counts_.lost++;
		return;
	}
	counts_.delivered++;
	sink_(parcel.frame, parcel.loan);
}

} // namespace tern::sim
