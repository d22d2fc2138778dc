/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

namespace tern {

struct Card;

/** The values that the driver wrote, as they are read back. */
struct Registers {
	uint32_t ctrl = 0;
	uint32_t aq_log_size = 0;
	uint64_t aq_base = 0;
	uint64_t acq_base = 0;
};

enum class RegisterWrite {
	Done,
	Reset, /* the whole card is to be reset */
};

uint32_t read_register(const Card &card, uint32_t offset);
RegisterWrite write_register(Card &card, uint32_t offset, uint32_t value);
/** BAR 2. What names no queue of page @page is dropped and counted. */
void doorbell(Card &card, uint32_t page, uint32_t offset, uint64_t value);

} // namespace tern
