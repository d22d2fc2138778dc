// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/pacer.h"

#include <algorithm>

#include "qemu/rnic/formats/packet.h"

namespace tern {

using namespace hw;

namespace {

/* Default burst: compensates for timers that are late by up to this, as the embedder's thread
 * competes for a processor. */
constexpr uint64_t kDefaultBurst = 1'000'000; /* ns */

} // namespace

void Pacer::set(const tern_hw_rate_limit &limit)
{
	*this = {};
	limit_ = limit;
	rate_ = limit.rate.get();
	if (!rate_)
		return;
	uint64_t burst = limit.burst.get();
	if (!burst)
		burst = std::max<uint64_t>(kDefaultBurst * rate_ / kBitNs, kMaxEthFrame);
	const uint64_t needed = std::max<uint64_t>(limit.packet.get(), 1);
	slack_ = time_of(burst - std::min(burst, needed));
}

void Pacer::set(uint64_t now, uint32_t rate, uint64_t slack)
{
	*this = {};
	rate_ = rate;
	slack_ = slack;
	full_at_ = now + slack;
}

void Pacer::change_rate(uint64_t now, uint32_t rate)
{
	if (rate == rate_)
		return;
	const uint64_t due = next();
	if (due > now)
		full_at_ = now + slack_ + (due - now) * rate_ / rate;
	remainder_ = 0;
	rate_ = rate;
}

void Pacer::sent(uint64_t now, uint64_t size)
{
	if (full_at_ < now) {
		full_at_ = now;
		remainder_ = 0;
	}
	const uint64_t cost = remainder_ + size * kBitNs;
	full_at_ += cost / rate_;
	remainder_ = cost % rate_;
}

bool Pacer::exhausted_by(uint64_t now, uint64_t size) const
{
	return std::max(full_at_, now) + time_of(size) > now + slack_;
}

} // namespace tern
