/* SPDX-License-Identifier: GPL-2.0 */
/* Names of values of tern_hw.h, without their prefix; "unknown" for others. */
#ifndef TERN_NAMES_H
#define TERN_NAMES_H

#include <linux/types.h>

const char *tern_aq_op_name(u16 opcode);
const char *tern_congestion_param_name(u32 param);
const char *tern_aq_status_name(u8 status);
const char *tern_fatal_name(u8 reason);
const char *tern_event_name(u8 type);
const char *tern_wc_name(u8 status);
const char *tern_qp_state_name(u8 state);

#endif
