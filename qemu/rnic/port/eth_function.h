/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qemu/rnic/port/toeplitz.h"
#include "qemu/rnic/stats.h"

namespace tern {

class EthQp;

/** The Ethernet function of the port: the QPs of type ETH, and the choice of one for each frame. */
class EthFunction {
public:
	/** SET_ETH_RSS. */
	struct Spread {
		std::vector<EthQp *> table; /* a power of two; empty: the oldest QP takes all */
		uint32_t fields = 0;        /* TERN_HASH_* */
		HashKey key{};
	};

	explicit EthFunction(Stats &stats) : stats_(stats) {}

	/** Whether there is no room for another QP. */
	bool full() const { return qps_.size() == hw::TERN_MAX_ETH_QPS; }
	void add(EthQp &qp) { qps_.push_back(&qp); }
	/** @qp is being destroyed: removes it, and a table that contains it. */
	void remove(EthQp &qp);
	void set_spread(Spread spread) { spread_ = std::move(spread); }

	/** Receives a frame that passed the filters, and counts it for the QP that takes it. */
	void receive(std::span<const std::byte> frame);

private:
	Stats &stats_;
	std::vector<EthQp *> qps_; /* oldest first */
	Spread spread_;
};

} // namespace tern
