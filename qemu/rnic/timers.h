/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

namespace tern {

/** Whose a deadline is. */
struct TimerOwner {
	enum class Kind : uint8_t { Qp, Cq, Wq };

	Kind kind;
	uint32_t number;

	auto operator<=>(const TimerOwner &) const = default;
};

/**
 * Deadlines, one for each owner: who has a later one too asks again when the first has
 * passed. So the queue does not grow with what a guest does, and a timer that is put off costs
 * nothing.
 */
class TimerQueue {
public:
	struct Entry {
		uint64_t deadline; /* ns, by the clock port */
		TimerOwner owner;
	};

	/** The deadline of an owner that has no entry. */
	static constexpr uint64_t kNone = UINT64_MAX;

	/** The entry of @owner moves from @queued to @deadline; either may be kNone. */
	void move(TimerOwner owner, uint64_t &queued, uint64_t deadline)
	{
		if (queued != kNone)
			entries_.erase({queued, owner});
		if (deadline != kNone)
			entries_.emplace(deadline, owner);
		queued = deadline;
	}

	std::optional<uint64_t> next() const
	{
		if (entries_.empty())
			return std::nullopt;
		return entries_.begin()->first;
	}

	/** Takes out an entry that is due at @now; its owner has none then. */
	std::optional<Entry> pop_due(uint64_t now)
	{
		if (entries_.empty() || entries_.begin()->first > now)
			return std::nullopt;
		const auto [deadline, owner] = *entries_.begin();
		entries_.erase(entries_.begin());
		return Entry{deadline, owner};
	}

private:
	std::set<std::pair<uint64_t, TimerOwner>> entries_;
};

} // namespace tern
