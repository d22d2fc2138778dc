/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace tern::fabric {

/**
 * The addresses that a table says are at one place, each once, in the order in which they were
 * learned. It bounds what a host that invents addresses adds to the table: its own oldest have to
 * go, and not those of others.
 *
 * Code that moves an address in the table has to move it here, too. An address that stayed where it
 * was would be there twice when it returns, and be forgotten as the oldest just after it was
 * learned.
 */
class LearnedAddresses {
public:
	static constexpr size_t kMost = 256;

	/** Adds an address that is not among these. If there are now more than kMost, removes the
	 * oldest one and returns it. The caller must remove that one from its table. */
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
	/** Removes an address that has moved elsewhere, in linear time. */
	void remove(uint64_t mac) { std::erase(addresses_, mac); }
	size_t size() const { return addresses_.size(); }
	void clear() { addresses_.clear(); }

private:
	std::deque<uint64_t> addresses_;
};

} // namespace tern::fabric
