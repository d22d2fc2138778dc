/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "tern/tern_hw.h"

namespace tern {

struct Card;

/** Executes one admin command; its result, if any, goes into the body of @completion. */
hw::tern_hw_aq_status execute(Card &card, const hw::tern_hw_aq_cmd &command,
                              hw::tern_hw_aq_cqe &completion);

} // namespace tern
