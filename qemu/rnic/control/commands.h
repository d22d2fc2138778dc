/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;

/** What an admin command may do in one run of the card, in units of the packets' budget. */
struct Slice {
	unsigned budget;    /* what is left */
	uint64_t spent = 0; /* in earlier slices of the command */
};

/**
 * Executes one admin command and writes its result, if any, to the body of @completion. Returns
 * none if the command needs more than @slice, which is then used up: call again with the next
 * slice. The objects hold the progress. Each call repeats the checks, because packets arrive in
 * between.
 */
std::optional<CommandStatus> execute(Card &card, const hw::tern_hw_aq_cmd &command,
                                     hw::tern_hw_aq_cqe &completion, Slice &slice);

/** Whether commands of this opcode create or change an object, for which a card may be out of room.
 */
bool may_lack_resources(uint16_t opcode);

} // namespace tern
