/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The admin commands of queue pairs. */
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tern/tern_hw.h"

namespace tern {

struct Card;
struct Slice;
struct QpConfig;
class Qp;

hw::tern_hw_aq_status create_qp(Card &card, const hw::tern_hw_create_qp &cmd,
                                hw::tern_hw_created &result);
std::optional<hw::tern_hw_aq_status> modify_qp(Card &card, const hw::tern_hw_modify_qp &cmd,
                                               Slice &slice);
hw::tern_hw_aq_status query_qp(Card &card, uint32_t qpn, hw::tern_hw_qp_attr &attr);
hw::tern_hw_aq_status query_fault(Card &card, uint32_t qpn, hw::tern_hw_faults &faults);
hw::tern_hw_aq_status resume_qp(Card &card, const hw::tern_hw_resume_qp &cmd);
hw::tern_hw_aq_status bind_stats(Card &card, const hw::tern_hw_bind_stats &cmd);
std::optional<hw::tern_hw_aq_status> destroy_qp(Card &card, uint32_t qpn, Slice &slice);

/** Inserts @qp into the table of QPs and writes its number to @result. A null @qp stands for an
 * unsupported type. */
hw::tern_hw_aq_status add_qp(Card &card, std::unique_ptr<Qp> qp, hw::tern_hw_created &result);
/** Adds @n to the user counts of all objects that @config names; objects with users cannot be
 * destroyed. Number 0 names no object. */
void count_users(Card &card, const QpConfig &config, int n);

} // namespace tern
