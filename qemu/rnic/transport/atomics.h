/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes the value of a word after an atomic operation. All arithmetic is modulo 2^64. */
#pragma once

#include <cstdint>

#include "qemu/rnic/formats/packet.h"

namespace tern {

/** Replaces the bits of masks.swap_add if the bits of masks.compare are equal. */
constexpr uint64_t masked_swap(uint64_t value, const AtomicEth &atomic, const AtomicMasks &masks)
{
	if ((value ^ atomic.compare) & masks.compare)
		return value;
	return (value & ~masks.swap_add) | (atomic.swap_add & masks.swap_add);
}

/** Returns the sum of @value and @add, in which no carry leaves a field. Each bit that is set in
 * @tops is the highest bit of a field. The lower bits are added first, and carry at most into the
 * highest bit; the exclusive or then adds the highest bits without a carry. */
constexpr uint64_t masked_sum(uint64_t value, uint64_t add, uint64_t tops)
{
	return ((value & ~tops) + (add & ~tops)) ^ ((value ^ add) & tops);
}

/** Returns the new value of a word that had @value, after an atomic with RC opcode @opcode. */
constexpr uint64_t atomic_result(Opcode opcode, const ExtHeaders &ext, uint64_t value)
{
	const AtomicEth &atomic = ext.atomic;
	switch (opcode) {
	case Opcode::RcCompareSwap:
		return value == atomic.compare ? atomic.swap_add : value;
	case Opcode::RcMaskedCompareSwap:
		return masked_swap(value, atomic, ext.masks);
	case Opcode::RcMaskedFetchAdd:
		return masked_sum(value, atomic.swap_add, ext.masks.swap_add);
	default:
		return value + atomic.swap_add;
	}
}

} // namespace tern
