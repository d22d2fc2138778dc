// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sim/link.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "qemu/rnic/formats/burst.h"

namespace tern::sim {

uint64_t Link::Loan::bytes() const
{
	uint64_t sum = 0;
	for (const HostRange &range : payload)
		sum += range.size;
	return sum;
}

uint64_t Link::Loan::packets() const
{
	return segment ? segments_of(bytes() + moved.size(), segment) : 1;
}

bool Link::queue(Frame frame, Loan loan)
{
	if (queued_ >= config.queue) {
		counts_.refused++;
		refused_ = true;
		return false;
	}
	counts_.sent += loan.packets();
	queued_++;
	const uint64_t bytes = frame.size() + loan.bytes();
	busy_until_ = std::max(busy_until_, loop_.now()) + bytes * config.ns_per_kib / 1024;
	const Shared parcel = add({std::move(frame), std::move(loan)});
	loop_.at(busy_until_, [this, parcel] { depart(parcel); });
	return true;
}

Link::Shared Link::add(Parcel parcel)
{
	const auto shared = std::make_shared<Parcel>(std::move(parcel));
	if (!shared->loan.payload.empty())
		lent_.push_back(shared);
	return shared;
}

Wire::Lend Link::lend(std::span<const std::byte> head, std::span<const HostRange> payload,
                      uint32_t segment, const tern::Loan &of)
{
	if (!config.borrow || !borrows() || !rng_.chance(config.borrow, 1000) ||
	    (segment && !rng_.chance(config.bursts, 1000)))
		return Wire::Lend::Refused;
	if (!queue({head.begin(), head.end()},
	           {true, {payload.begin(), payload.end()}, segment, of}))
		return Wire::Lend::Full;
	counts_.lent++;
	return Wire::Lend::Done;
}

uint64_t Link::recall(const Recall &what, const Read &read)
{
	std::erase_if(lent_, [](const auto &parcel) { return parcel.expired(); });
	uint64_t revoked = 0;
	for (const auto &weak : lent_) {
		const Shared parcel = weak.lock();
		Loan &loan = parcel->loan;
		if (parcel->revoked || loan.payload.empty() || !what.concerns(loan.of))
			continue;
		parcel->revoked = !what.is_key() || !rng_.chance(config.moves, 1000);
		if (parcel->revoked) {
			revoked += loan.packets();
			continue;
		}
		for (const HostRange &range : std::exchange(loan.payload, {}))
			std::ranges::copy(read(range), std::back_inserter(loan.moved));
	}
	return revoked;
}

/* The last bit has left: there is room for another frame. */
void Link::depart(const Shared &parcel)
{
	queued_--;
	const Faults &f = config.faults;
	if (rng_.chance(f.loss, 1000)) {
		counts_.lost += parcel->loan.packets();
	} else {
		if (rng_.chance(f.duplicate, 1000)) {
			counts_.duplicated += parcel->loan.packets();
			travel(add(*parcel));
		}
		if (rng_.chance(f.corrupt, 1000))
			damage(parcel);
		else
			travel(parcel);
	}
	if (refused_ && on_room) {
		refused_ = false;
		on_room();
	}
}

/* Memory does not err so, and a loan has no ICRC that would tell: it gets lost. */
void Link::damage(const Shared &parcel)
{
	if (parcel->loan.lent) {
		counts_.lost += parcel->loan.packets();
		return;
	}
	counts_.corrupted++;
	parcel->frame[rng_.below(parcel->frame.size())] ^=
	        static_cast<std::byte>(1 << rng_.below(8));
	travel(parcel);
}

void Link::travel(const Shared &parcel)
{
	uint64_t delay = config.latency;
	if (rng_.chance(config.faults.reorder, 1000)) {
		counts_.reordered++;
		delay += rng_.between(1, config.max_reorder);
	}
	loop_.after(delay, [this, parcel] { arrive(*parcel); });
}

void Link::arrive(const Parcel &parcel)
{
	/* A frame that has all of its payload in itself cannot be revoked. */
	if (parcel.revoked || (!parcel.loan.payload.empty() && !borrows())) {
		counts_.lost += parcel.loan.packets();
		return;
	}
	counts_.delivered += parcel.loan.packets();
	sink_(parcel.frame, parcel.loan);
}

} // namespace tern::sim
