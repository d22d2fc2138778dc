// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cases. Both sides run the same function; session.active says which of them asks. A case
 * throws CheckFailed where it does not go as the specification says.
 */
#pragma once

#include <span>

#include "endpoint.h"

namespace tern::guest {

struct Case {
	const char *name;
	const char *what;
	void (*run)(Session &session);
};

std::span<const Case> error_cases();     /* cases_error.cc */
std::span<const Case> data_cases();      /* cases_data.cc */
std::span<const Case> order_cases();     /* cases_order.cc */
std::span<const Case> atomic_cases();    /* cases_atomic.cc */
std::span<const Case> flush_cases();     /* cases_flush.cc */
std::span<const Case> cq_cases();        /* cases_cq.cc */
std::span<const Case> comp_cntr_cases(); /* cases_comp_cntr.cc */
std::span<const Case> stress_cases();    /* cases_stress.cc */
std::span<const Case> lifecycle_cases(); /* cases_lifecycle.cc */
std::span<const Case> event_cases();     /* cases_events.cc */
std::span<const Case> srq_cases();       /* cases_srq.cc */
std::span<const Case> xrc_cases();       /* cases_xrc.cc */
std::span<const Case> raw_cases();       /* cases_raw.cc */
std::span<const Case> datagram_cases();  /* cases_datagram.cc */
std::span<const Case> uc_cases();        /* cases_uc.cc */
std::span<const Case> window_cases();    /* cases_window.cc */
std::span<const Case> memory_cases();    /* cases_memory.cc */
std::span<const Case> pacing_cases();    /* cases_pacing.cc */
std::span<const Case> odp_cases();       /* cases_odp.cc */
std::span<const Case> errno_cases();     /* cases_errno.cc */

/** A fresh connection carries data both ways: what every case ends with. */
void check_device_works(Session &session);
/** The active side writes 16 bytes, of the pattern of @offset, there over a connection of its own.
 */
void expect_write(Session &session, const RemoteBuffer &remote, uint64_t offset,
                  ibv_wc_status status);

} // namespace tern::guest
