/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "qemu/rnic/port/eth_qp.h"

namespace tern {

/** A receive queue of its own, of CREATE_WQ: a raw QP that has nothing else. */
class ReceiveWq final : public EthQp {
public:
	ReceiveWq(Card &card, const QpConfig &config, RecvQueue rq)
	        : EthQp(card, config, {}, std::move(rq))
	{
	}

	/** MODIFY_WQ. */
	hw::tern_hw_aq_status enter(hw::tern_hw_wq_state state);

	uint32_t users = 0; /* entries of tables */

private:
	bool may_wait_for_pages() const override { return false; }
};

/** Which WQ takes a frame. */
struct WqTable {
	std::vector<uint32_t> wqns; /* a power of two of them */
	uint32_t users = 0;         /* QPs of CREATE_RSS_QP */
};

} // namespace tern
