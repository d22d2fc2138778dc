/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "qemu/rnic/port/eth_qp.h"

namespace tern {

/** A receive WQ (CREATE_WQ): a raw QP with only a receive queue. */
class ReceiveWq final : public EthQp {
public:
	ReceiveWq(DataPath &data, Port &port, const QpConfig &config, RecvQueue rq)
	        : EthQp(data, port, config, {}, std::move(rq))
	{
	}

	/** MODIFY_WQ. */
	CommandStatus enter(hw::tern_hw_wq_state state);

	uint32_t users = 0; /* table entries */

private:
	bool may_wait_for_pages() const override { return false; }
};

/** A table of WQs for receive-side scaling. */
struct WqTable {
	std::vector<uint32_t> wqns; /* size is a power of two */
	uint32_t users = 0;         /* QPs of CREATE_RSS_QP */
};

} // namespace tern
