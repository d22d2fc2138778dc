/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstdint>

#include "tern/tern_hw.h"

namespace tern {

/** The counters of QUERY_STATS, indexed by enum tern_hw_stat. */
class Stats {
public:
	void add(hw::tern_hw_stat which, uint64_t n = 1) { values_[which] += n; }
	uint64_t operator[](hw::tern_hw_stat which) const { return values_[which]; }

private:
	std::array<uint64_t, hw::TERN_STAT_COUNT> values_{};
};

} // namespace tern
