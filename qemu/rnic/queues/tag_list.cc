// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/queues/tag_list.h"

#include <algorithm>

namespace tern {

bool TagList::add(uint32_t entry, uint64_t tag, uint64_t mask, const Sge &buffer)
{
	if (entry >= entries_.size() || entries_[entry].state != State::Free)
		return false;
	entries_[entry] = {tag, mask, buffer, State::Listed};
	order_.push_back(entry);
	if (synchronized())
		active_ = order_.size();
	return true;
}

TagList::Removed TagList::remove(uint32_t entry)
{
	if (entry >= entries_.size())
		return Removed::NoEntry;
	if (entries_[entry].state != State::Listed)
		return Removed::NotListed;
	const auto at = std::ranges::find(order_, entry);
	active_ -= static_cast<size_t>(at - order_.begin()) < active_;
	order_.erase(at);
	release(entry);
	return Removed::Done;
}

std::optional<uint32_t> TagList::match(uint64_t tag)
{
	for (size_t i = 0; i < active_; i++) {
		const uint32_t number = order_[i];
		Entry &entry = entries_[number];
		if ((tag & entry.mask) != entry.tag)
			continue;
		entry.state = State::Matched;
		order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(i));
		active_--;
		return number;
	}
	return std::nullopt;
}

void TagList::synchronize(uint32_t count)
{
	known_ = count;
	if (synchronized())
		active_ = order_.size();
}

} // namespace tern
