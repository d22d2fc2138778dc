/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/memory/region.h"
#include "tern/tern_hw.h"

namespace tern {

/** Parameters of CREATE_QP, validated. */
struct QpConfig {
	hw::tern_hw_qp_type type = hw::TERN_QPT_RC;
	uint32_t pdn = 0;
	uint32_t send_cqn = 0;
	uint32_t recv_cqn = 0;
	uint32_t db_page = 0;
	uint32_t xrcdn = 0; /* XRC_TGT */
	uint32_t srqn = 0;  /* 0: own receive queue, or none */
	bool signal_all = false;
	bool no_mc_loopback = false;
	bool is_wq = false;    /* a receive WQ, not visible to the host as a QP */
	uint32_t wq_table = 0; /* of CREATE_RSS_QP */

	/** For access by the QP's own WQEs. */
	Memory::Domain domain() const { return {pdn, db_page == hw::TERN_DB_PAGE_KERNEL}; }
};

} // namespace tern
