/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of receive WQs and of receive-side scaling. */
#pragma once

#include <cstdint>

#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;

CommandStatus create_wq(Card &card, const hw::tern_hw_create_wq &cmd, hw::tern_hw_created &result);
CommandStatus modify_wq(Card &card, const hw::tern_hw_modify_wq &cmd);
CommandStatus destroy_wq(Card &card, uint32_t wqn);
CommandStatus create_wq_table(Card &card, const hw::tern_hw_create_wq_table &cmd,
                              hw::tern_hw_created &result);
CommandStatus destroy_wq_table(Card &card, uint32_t number);
/** The QP is destroyed by DESTROY_QP. */
CommandStatus create_rss_qp(Card &card, const hw::tern_hw_create_rss_qp &cmd,
                            hw::tern_hw_created &result);
/** Selects the QP of type ETH for each received frame. */
CommandStatus set_eth_rss(Card &card, const hw::tern_hw_set_eth_rss &cmd);

} // namespace tern
