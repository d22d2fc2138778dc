/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/ports.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;

/** The rings through which the driver commands the card. */
class AdminQueue {
public:
	explicit AdminQueue(Card &card) : card_(card) {}

	/** Takes over the ring registers; false when they make no sense. */
	bool enable(Iova commands, Iova completions, uint32_t log_size);
	/** The driver has written commands up to @pi. */
	void ring(uint32_t pi);
	/** Executes up to @budget commands; true when there are more. */
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
