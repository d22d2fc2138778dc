/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of queue pairs. */
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "qemu/rnic/command_status.h"
#include "tern/tern_hw.h"

namespace tern {

struct Card;
struct Slice;
struct QpConfig;
class Qp;

CommandStatus create_qp(Card &card, const hw::tern_hw_create_qp &cmd, hw::tern_hw_created &result);
std::optional<CommandStatus> modify_qp(Card &card, const hw::tern_hw_modify_qp &cmd, Slice &slice);
CommandStatus query_qp(Card &card, uint32_t qpn, hw::tern_hw_qp_attr &attr);
CommandStatus query_fault(Card &card, uint32_t qpn, hw::tern_hw_faults &faults);
CommandStatus resume_qp(Card &card, const hw::tern_hw_resume_qp &cmd);
CommandStatus bind_stats(Card &card, const hw::tern_hw_bind_stats &cmd);
std::optional<CommandStatus> destroy_qp(Card &card, uint32_t qpn, Slice &slice);

/** Whether the engine can have QPs of @type: some are engine 0's alone. */
bool engine_supports(const Card &card, uint8_t type);
/** Inserts @qp into the table of QPs and writes its number to @result. */
CommandStatus add_qp(Card &card, std::unique_ptr<Qp> qp, hw::tern_hw_created &result);
/** Adds @n to the user counts of all objects that @config names; objects with users cannot be
 * destroyed. Number 0 names no object. */
void count_users(Card &card, const QpConfig &config, int n);

} // namespace tern
