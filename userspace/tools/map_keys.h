// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstring>
#include <set>
#include <type_traits>
#include <vector>

namespace tern::tools {

struct CompareBytes {
	template <class Key>
	bool operator()(const Key &a, const Key &b) const
	{
		static_assert(std::has_unique_object_representations_v<Key>);
		return std::memcmp(&a, &b, sizeof(Key)) < 0;
	}
};

/**
 * Returns each key of a map of up to @most entries once, in any order. Entries may come and go
 * meanwhile. @next(previous, key) writes the key after @previous, which is null for the first key,
 * and returns whether there is one.
 */
template <class Key, class Next>
std::vector<Key> map_keys(size_t most, Next next)
{
	std::set<Key, CompareBytes> keys;
	Key key, previous;

	/* The kernel starts again at the first key if the previous key was deleted meanwhile. */
	for (size_t n = 0; n < 2 * most && next(n ? &previous : nullptr, key); n++) {
		keys.insert(key);
		previous = key;
	}
	return {keys.begin(), keys.end()};
}

} // namespace tern::tools
