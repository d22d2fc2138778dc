/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "qemu/rnic/environment.h"

namespace tern {

/** The location of a payload in host memory, as a short list of ranges, and the regions and windows
 * through which it was found. */
class HostRanges {
public:
	static constexpr size_t kMax = 32;

	/** Returns false if there is no room for another range. */
	bool add(Iova iova, uint32_t size)
	{
		if (count_ && last().iova + last().size == iova) {
			last().size += size;
			return true;
		}
		if (count_ == kMax)
			return false;
		ranges_[count_++] = {iova, size};
		return true;
	}
	std::span<const HostRange> list() const { return {ranges_.data(), count_}; }
	size_t bytes() const
	{
		size_t sum = 0;
		for (const HostRange &range : list())
			sum += range.size;
		return sum;
	}

	LoanKeys keys;

private:
	HostRange &last() { return ranges_[count_ - 1]; }

	std::array<HostRange, kMax> ranges_;
	size_t count_ = 0;
};

} // namespace tern
