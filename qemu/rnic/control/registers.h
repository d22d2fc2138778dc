/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

namespace tern {

struct Card;

/** Register values written by the driver, as they read back. */
struct Registers {
	uint32_t ctrl = 0;
	uint32_t aq_log_size = 0;
	uint64_t aq_base = 0;
	uint64_t acq_base = 0;
};

enum class RegisterWrite {
	Done,
	Reset, /* reset the whole card */
};

uint32_t read_register(const Card &card, uint32_t offset);
RegisterWrite write_register(Card &card, uint32_t offset, uint32_t value);
/** BAR 2. A doorbell for a queue that is not bound to page @page is dropped and counted. */
void doorbell(Card &card, uint32_t page, uint32_t offset, uint64_t value);

} // namespace tern
