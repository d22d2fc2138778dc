/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tern {

/**
 * Events by time, those of one time in the order in which they were added. An operation takes
 * constant time, however many events there are. All times in the wheel are less than kSpan apart.
 *
 * An event is known by a small number, and is in the wheel once at most.
 */
class TimingWheel {
public:
	struct Event {
		uint64_t when; /* ns */
		uint32_t number;
	};
	static constexpr uint64_t kSpan = 4096;

	TimingWheel() : slots_(kSpan) {}

	void push_back(const Event &event)
	{
		if (event.number >= next_.size())
			next_.resize(std::max<size_t>(event.number + 1, 2 * next_.size()));
		next_[event.number] = kNone;
		Slot &slot = slot_of(event.when);
		uint64_t &word = occupied_[word_of(event.when)];
		if (word & bit_of(event.when))
			next_[slot.last] = event.number;
		else
			slot.first = event.number;
		slot.last = event.number;
		word |= bit_of(event.when);
		words_ |= bit_of(word_of(event.when));
	}
	/** Returns the first event, if there is one. No event may be earlier than @now. */
	std::optional<Event> first(uint64_t now) const
	{
		if (!words_)
			return std::nullopt;
		const uint64_t when = occupied_from(now);
		return Event{when, slot_of(when).first};
	}
	/** Removes @event, which must be the first event. */
	void pop(const Event &event)
	{
		Slot &slot = slot_of(event.when);
		slot.first = next_[event.number];
		if (slot.first != kNone)
			return;
		uint64_t &word = occupied_[word_of(event.when)];
		word &= ~bit_of(event.when);
		if (!word)
			words_ &= ~bit_of(word_of(event.when));
	}
	/** Returns the second event, if there is one. @first must be the first event. */
	std::optional<Event> second(const Event &first) const
	{
		if (next_[first.number] != kNone)
			return Event{first.when, next_[first.number]};
		const uint64_t when = occupied_from(first.when + 1);
		if (when == first.when + kSpan)
			return std::nullopt;
		return Event{when, slot_of(when).first};
	}

private:
	/* A list of the events of one time. */
	struct Slot {
		uint32_t first, last;
	};

	static constexpr uint64_t kBits = 64; /* of a word */
	static constexpr uint64_t kWords = kSpan / kBits;
	static_assert(kWords == kBits); /* words_ has a bit for each */
	static constexpr uint32_t kNone = UINT32_MAX;

	static uint64_t word_of(uint64_t when) { return when / kBits % kWords; }
	static uint64_t bit_of(uint64_t when) { return uint64_t{1} << when % kBits; }
	Slot &slot_of(uint64_t when) { return slots_[when % kSpan]; }
	const Slot &slot_of(uint64_t when) const { return slots_[when % kSpan]; }

	/* Returns the first time, @from or later, that has events. The wheel is not empty. */
	uint64_t occupied_from(uint64_t from) const
	{
		const uint64_t word = word_of(from);
		if (const uint64_t bits = occupied_[word] >> from % kBits)
			return from + static_cast<unsigned>(std::countr_zero(bits));
		/* Words follow each other in a circle: the last one is @word itself, with the
		 * times below @from. */
		const auto next = static_cast<int>((word + 1) % kWords);
		const auto words =
		        1 + static_cast<unsigned>(std::countr_zero(std::rotr(words_, next)));
		const uint64_t bits = occupied_[(word + words) % kWords];
		return (from / kBits + words) * kBits +
		       static_cast<unsigned>(std::countr_zero(bits));
	}

	uint64_t words_ = 0;                      /* a bit for each word of occupied_ */
	std::array<uint64_t, kWords> occupied_{}; /* a bit for each slot with events */
	std::vector<Slot> slots_;                 /* by time modulo kSpan; valid if occupied */
	std::vector<uint32_t> next_;              /* of the same time, by event */
};

} // namespace tern
