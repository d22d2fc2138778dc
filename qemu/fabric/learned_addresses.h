/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace tern::fabric {

/**
 * The addresses that were learned at one place, in their order. It bounds what a host that invents
 * addresses adds to a table: its own oldest have to go, and not those of others. An address that
 * has since been learned elsewhere may still be among them.
 */
class LearnedAddresses {
public:
	static constexpr size_t kMost = 256;

	/** Adds an address. If there are more than kMost then, removes the oldest and returns it;
	 * the caller should remove it from its table, unless it has been learned elsewhere. */
	std::optional<uint64_t> add(uint64_t mac)
	{
		addresses_.push_back(mac);
		return size() > kMost ? std::optional(take_oldest()) : std::nullopt;
	}
	uint64_t take_oldest()
	{
		const uint64_t oldest = addresses_.front();
		addresses_.pop_front();
		return oldest;
	}
	size_t size() const { return addresses_.size(); }
	void clear() { addresses_.clear(); }

private:
	std::deque<uint64_t> addresses_;
};

} // namespace tern::fabric
