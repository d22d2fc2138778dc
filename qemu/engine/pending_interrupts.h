/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "qemu/engine/engine.h"
#include "qemu/rnic/environment.h"

namespace tern {

/** The vectors that the engine's thread has raised and the front end has not taken. */
class PendingInterrupts final : public Interrupts {
public:
	PendingInterrupts(const tern_engine_ops &ops, void *opaque) : ops_(ops), opaque_(opaque) {}

	void raise(unsigned vector) override
	{
		if (vector >= TERN_ENGINE_MAX_VECTORS)
			return;
		/* A bit that was already set has been announced and is still to be taken. */
		const uint64_t bit = uint64_t{1} << (vector % 64);
		if (!(words_[vector / 64].fetch_or(bit) & bit))
			ops_.interrupts_pending(opaque_);
	}
	/** Takes and clears vectors 64 * @word ... 64 * @word + 63. */
	uint64_t take(unsigned word) { return words_[word].exchange(0); }
	void clear()
	{
		for (auto &word : words_)
			word.store(0);
	}

private:
	const tern_engine_ops &ops_;
	void *const opaque_;
	std::array<std::atomic<uint64_t>, TERN_ENGINE_MAX_VECTORS / 64> words_{};
};

} // namespace tern
