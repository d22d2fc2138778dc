/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/ports.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;

/** The admin queue: the rings of commands from the driver and of their completions. */
class AdminQueue {
public:
	explicit AdminQueue(Card &card) : card_(card) {}

	/** Starts with the ring registers' values; false if they are invalid. */
	bool enable(Iova commands, Iova completions, uint32_t log_size);
	/** Admin doorbell: commands up to @pi are posted. */
	void ring(uint32_t pi);
	/** Executes up to @budget commands; returns true if there are more. */
	bool run(unsigned budget);

	bool raise_interrupts = false;

private:
	bool execute_next();

	Card &card_;
	Iova commands_ = 0;
	Iova completions_ = 0;
	uint32_t log_size_ = 0;
	uint32_t pi_ = 0;
	uint32_t ci_ = 0;
};

} // namespace tern
