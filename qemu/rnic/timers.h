/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

namespace tern {

/**
 * Deadlines of QPs, by QPN, one for each: who has a later one too asks again when the first has
 * passed. So the queue does not grow with what a guest does, and a timer that is put off costs
 * nothing.
 */
class TimerQueue {
public:
	struct Entry {
		uint64_t deadline; /* ns, by the clock port */
		uint32_t qpn;
	};

	void add(uint64_t deadline, uint32_t qpn) { entries_.emplace(deadline, qpn); }
	void remove(uint64_t deadline, uint32_t qpn) { entries_.erase({deadline, qpn}); }

	std::optional<uint64_t> next() const
	{
		if (entries_.empty())
			return std::nullopt;
		return entries_.begin()->first;
	}

	/** Takes out an entry that is due at @now. */
	std::optional<Entry> pop_due(uint64_t now)
	{
		if (entries_.empty() || entries_.begin()->first > now)
			return std::nullopt;
		const auto [deadline, qpn] = *entries_.begin();
		entries_.erase(entries_.begin());
		return Entry{deadline, qpn};
	}

private:
	std::set<std::pair<uint64_t, uint32_t>> entries_;
};

} // namespace tern
