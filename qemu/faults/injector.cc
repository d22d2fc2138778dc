// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/faults/injector.h"

#include <utility>

#include "qemu/fabric/classify.h"
#include "qemu/rnic/formats/headers.h"
#include "qemu/rnic/formats/packet.h"

namespace tern::faults {

namespace {

constexpr size_t kBthSize = sizeof(headers::Bth);
/* Frames that are to be held back beyond this are lost, as in a switch with full buffers. */
constexpr size_t kMaxHeldBytes = 64 << 20;
/* Memory for a frame besides its bytes: of the map, the transfer and the allocator. */
constexpr size_t kHeldOverhead = 256;

/* The bytes of which some are corrupted. */
std::span<std::byte> corruptible(std::span<std::byte> frame, bool spare_headers)
{
	if (!spare_headers)
		return frame.subspan(sizeof(headers::Ethernet));
	const Bytes packet = roce_transport(frame);
	const auto begin = static_cast<size_t>(packet.data() - frame.data()) + kBthSize;
	return frame.subspan(begin, packet.size() - kBthSize);
}

} // namespace

Injector::Destination &Injector::destination(unsigned to)
{
	if (to >= destinations_.size())
		destinations_.resize(to + 1);
	return destinations_[to];
}

/* Percentages are of what gets to cards. They hold back one frame of a destination at a time, so
 * that what overtakes it is not held back, too. */
Injector::Verdict Injector::decide(const Passage &passage, unsigned to, size_t size)
{
	FaultSet::Decision decision = passage.at_card ? faults_.decide() : FaultSet::Decision();
	decision.marked &= fabric::can_mark(passage.frame);
	if (!destination(to).to_be_overtaken.empty())
		decision.overtaken = 0;
	const auto note = [&](bool happened, Fault fault, uint64_t amount = 0) {
		if (happened)
			events_.push_back(faults_.event_of(fault, 0, amount, passage));
	};
	note(decision.lost, Fault::Drop);
	if (!decision.lost) {
		note(decision.corrupted, Fault::Corrupt);
		note(decision.marked, Fault::Mark);
		note(decision.duplicated, Fault::Duplicate);
		note(decision.overtaken, Fault::Reorder, decision.overtaken);
	}
	faults_.apply_rules(passage, addresses_, decision, events_);
	const bool held = decision.overtaken || decision.delay.count();
	if (held && !decision.lost && held_bytes_ + size + kHeldOverhead > kMaxHeldBytes) {
		decision.lost = true;
		events_.push_back(faults_.event_of(Fault::Drop, FaultEvent::kNoRoom, 0, passage));
	}
	return {decision, to, size, passage.roce.has_value()};
}

bool Injector::apply(const Verdict &verdict, Transfer &transfer, Time now)
{
	const auto &[decision, to, size, roce] = verdict;
	if (decision.lost) {
		faults_.counts.lost++;
		return true;
	}
	faults_.counts.duplicated += decision.duplicated;
	change(verdict, transfer);
	if (decision.overtaken || decision.delay.count()) {
		hold(verdict, transfer, now);
		return true;
	}
	const bool room = deliver(to, transfer, decision.duplicated ? 2 : 1);
	return release_overtaken(to) && room;
}

/* Returns whether the destination has room for more. A frame that is held back arrives, and so
 * overtakes others, only when it is released. */
bool Injector::deliver(unsigned to, Transfer &transfer, unsigned copies)
{
	destination(to).arrivals++;
	bool room = true;
	while (copies--)
		room = transfer.deliver();
	return room;
}

void Injector::change(const Verdict &verdict, Transfer &transfer)
{
	const FaultSet::Decision &decision = verdict.decision;
	if (decision.marked)
		faults_.counts.marked += fabric::mark_ce(transfer.headers()) == fabric::Ecn::Marked;
	if (decision.corrupted) {
		faults_.counts.corrupted++;
		faults_.corrupt(
		        corruptible(transfer.whole(), decision.spare_headers && verdict.roce));
	}
}

void Injector::hold(const Verdict &verdict, Transfer &transfer, Time now)
{
	const FaultSet::Decision &decision = verdict.decision;
	Held held{.to = verdict.to,
	          .size = verdict.size + kHeldOverhead,
	          .transfer = transfer.keep(),
	          .copies = decision.duplicated ? 2u : 1u,
	          .last_arrival = std::nullopt};
	Time due = now + decision.delay;
	if (decision.delay.count()) {
		faults_.counts.delayed++;
	} else {
		faults_.counts.reordered++;
		due = now + decision.patience;
		held.last_arrival = destination(held.to).arrivals + decision.overtaken;
	}
	held_bytes_ += held.size;
	const auto place = held_.emplace(due, std::move(held));
	if (const auto last = place->second.last_arrival)
		destination(verdict.to).to_be_overtaken.emplace(*last, place);
}

bool Injector::release_overtaken(unsigned to)
{
	const auto overtaken = [&] {
		const Destination &at = destination(to);
		return !at.to_be_overtaken.empty() &&
		       at.to_be_overtaken.begin()->first <= at.arrivals;
	};
	bool room = true;
	while (overtaken())
		room &= release(destination(to).to_be_overtaken.begin()->second);
	return room;
}

/* Delivers @held. Returns whether its destination has room for more frames. The caller calls
 * release_overtaken() afterwards, since @held may have overtaken others. */
bool Injector::release(HeldFrames::iterator held)
{
	const Held frame = std::move(held->second);
	if (frame.last_arrival) {
		auto &waiting = destination(frame.to).to_be_overtaken;
		auto entry = waiting.find(*frame.last_arrival);
		while (entry->second != held)
			entry++;
		waiting.erase(entry);
	}
	held_.erase(held);
	held_bytes_ -= frame.size;
	return deliver(frame.to, *frame.transfer, frame.copies);
}

void Injector::release_due(Time now)
{
	while (holds() && next_due() <= now) {
		const unsigned to = held_.begin()->second.to;
		release(held_.begin());
		release_overtaken(to);
	}
}

void Injector::forget(unsigned to)
{
	std::erase_if(held_, [&](const auto &entry) {
		const Held &held = entry.second;
		held_bytes_ -= held.to == to ? held.size : 0;
		return held.to == to;
	});
	destination(to).to_be_overtaken.clear();
}

} // namespace tern::faults
