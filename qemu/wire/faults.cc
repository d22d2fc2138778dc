// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/wire/faults.h"

#include <cmath>
#include <limits>

namespace tern::wire {

constexpr size_t kEthernetHeader = 14;
constexpr unsigned kMaxOvertaken = 4;
constexpr unsigned kMaxFlips = 3;

void Faults::set_percent(Kind kind, double percent)
{
	const double share = percent / 100;
	thresholds_[kind] = share >= 1 ? std::numeric_limits<uint64_t>::max()
	                               : static_cast<uint64_t>(std::ldexp(share, 64));
	any_ = false;
	for (const uint64_t threshold : thresholds_)
		any_ |= threshold != 0;
}

/* Always draws a number, so that one fault's rate does not affect the others. */
bool Faults::happens(Kind kind)
{
	const uint64_t drawn = random_();
	return thresholds_[kind] && drawn <= thresholds_[kind];
}

Faults::Decision Faults::decide()
{
	Decision decision;
	decision.lost = happens(kLoss);
	decision.duplicated = happens(kDuplicate);
	decision.corrupted = happens(kCorrupt);
	const auto overtaken = static_cast<unsigned>(1 + random_() % kMaxOvertaken);
	decision.overtaken = happens(kReorder) ? overtaken : 0;
	return decision;
}

void Faults::corrupt(std::span<std::byte> frame)
{
	if (frame.size() <= kEthernetHeader)
		return;
	const size_t bits = 8 * (frame.size() - kEthernetHeader);
	/* An even number of flips could cancel out; distinct positions prevent that. */
	const size_t first = random_() % bits;
	const size_t flips = 1 + random_() % kMaxFlips;
	for (size_t i = 0; i < flips; i++) {
		const size_t bit = (first + i * (bits / kMaxFlips)) % bits;
		frame[kEthernetHeader + bit / 8] ^= std::byte{1} << (bit % 8);
	}
}

} // namespace tern::wire
