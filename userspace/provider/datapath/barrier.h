// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Barriers between the CPU and the card, which reads and writes memory by DMA. C++'s own are for
 * other CPUs: on ARM64 they reach the inner shareable domain, in which a device need not be.
 */
#pragma once

#include <atomic>

namespace tern::provider {

#if defined(__x86_64__)

/** Earlier stores are visible to the card before later ones, MMIO included. */
inline void to_card_barrier()
{
	/* x86 keeps the order of stores, to uncached pages too. */
	std::atomic_signal_fence(std::memory_order_release);
}

/** Earlier loads of what the card writes come before later loads and stores. */
inline void from_card_barrier()
{
	/* x86 keeps this order, too. */
	std::atomic_signal_fence(std::memory_order_acquire);
}

/** All earlier accesses come before all later ones, write-combining memory included. */
inline void full_barrier()
{
	std::atomic_thread_fence(std::memory_order_seq_cst);
}

#elif defined(__aarch64__)

inline void to_card_barrier()
{
	asm volatile("dmb oshst" ::: "memory");
}

inline void from_card_barrier()
{
	asm volatile("dmb oshld" ::: "memory");
}

inline void full_barrier()
{
	asm volatile("dmb osh" ::: "memory");
}

#else
#error "which barriers order memory and MMIO for a device on this architecture?"
#endif

} // namespace tern::provider
