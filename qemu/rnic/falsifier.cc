// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/falsifier.h"

#include <algorithm>
#include <cstring>

namespace tern {

namespace {

/* Numbers of objects, indices, sizes and codes that a host may use are mostly below this. */
constexpr uint32_t kSmall = 64;

} // namespace

void Falsifier::start(uint32_t every, uint32_t seed)
{
	every_ = every;
	random_.seed(seed);
}

size_t Falsifier::change(std::span<std::byte> entry)
{
	const auto body = entry.first(entry.size() - 1);
	const size_t offset = random_() % body.size();
	const auto kind = random_() % 4;
	if (kind == 0) {
		body[offset] ^= std::byte{1} << random_() % 8;
		return offset;
	}
	uint32_t word = static_cast<uint32_t>(random_());
	if (kind == 1)
		word %= kSmall;
	else if (kind == 2)
		word = UINT32_MAX;
	const size_t start = offset & ~(sizeof(word) - 1);
	/* Little-endian, as all fields are: the low bytes come first. */
	for (size_t i = start; i < std::min(start + sizeof(word), body.size()); i++, word >>= 8)
		body[i] = static_cast<std::byte>(word);
	return start;
}

} // namespace tern
