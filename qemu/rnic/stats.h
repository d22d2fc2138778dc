/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

/** The counters of QUERY_STATS, indexed by enum tern_hw_stat. */
class Counters {
public:
	void add(hw::tern_hw_stat which, uint64_t n) { values_[which] += n; }
	uint64_t operator[](hw::tern_hw_stat which) const { return values_[which]; }

private:
	std::array<uint64_t, hw::TERN_STAT_COUNT> values_{};
};

/** An object of CREATE_STATS. */
struct StatsSet {
	Counters counters;
	uint32_t users = 0; /* QPs bound to it */
};

/**
 * The counters of an engine. It counts each event twice: once in all(), and once in the set that
 * the QP at work is bound to, or in unbound() if that QP is bound to no set.
 */
class Stats {
public:
	Stats() = default;
	Stats(const Stats &) = delete;
	Stats &operator=(const Stats &) = delete;

	void add(hw::tern_hw_stat which, uint64_t n = 1)
	{
		all_.add(which, n);
		current_->add(which, n);
	}
	/** Counts @frames frames of @bytes together, which the port has received. */
	void add_received(uint64_t bytes, uint64_t frames = 1)
	{
		add(hw::TERN_STAT_RX_FRAMES, frames);
		add(hw::TERN_STAT_RX_BYTES, bytes);
	}
	uint64_t operator[](hw::tern_hw_stat which) const { return all_[which]; }
	const Counters &all() const { return all_; }
	const Counters &unbound() const { return unbound_; }

	/** While a Scope exists, @set counts what would otherwise be unbound. With a null @set
	 * nothing changes. */
	class Scope {
	public:
		Scope(Stats &stats, StatsSet *set) : stats_(stats), outer_(stats.current_)
		{
			if (set)
				stats.current_ = &set->counters;
		}
		~Scope() { stats_.current_ = outer_; }
		Scope(const Scope &) = delete;
		Scope &operator=(const Scope &) = delete;

	private:
		Stats &stats_;
		Counters *outer_;
	};

private:
	Counters all_;
	Counters unbound_;
	Counters *current_ = &unbound_;
};

} // namespace tern
