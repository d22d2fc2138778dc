/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace tern
{

/**
 * Deadlines of QPs, by QPN. A timer that is put off costs nothing here: the owner keeps its true
 * deadline, and when the entry comes due too early it is told so and queues itself again.
 */
class TimerQueue
{
public:
	struct Entry {
		uint64_t deadline; /* ns, by the clock port */
		uint32_t qpn;

		bool operator>(const Entry &other) const { return deadline > other.deadline; }
	};

	void add(uint64_t deadline, uint32_t qpn)
	{
		heap_.push_back({deadline, qpn});
		std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
	}

	std::optional<uint64_t> next() const
	{
		if (heap_.empty())
			return std::nullopt;
		return heap_.front().deadline;
	}

	/** Takes out an entry that is due at @now. */
	std::optional<Entry> pop_due(uint64_t now)
	{
		if (heap_.empty() || heap_.front().deadline > now)
			return std::nullopt;
		std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
		const Entry entry = heap_.back();
		heap_.pop_back();
		return entry;
	}

private:
	std::vector<Entry> heap_;
};

} // namespace tern
