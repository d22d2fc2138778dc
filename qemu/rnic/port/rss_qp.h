/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "qemu/rnic/object_table.h"
#include "qemu/rnic/port/frame_sink.h"
#include "qemu/rnic/port/receive_wq.h"
#include "qemu/rnic/port/toeplitz.h"
#include "qemu/rnic/transport/qp.h"

namespace tern {

/** A QP without queues or states that spreads the frames of its flows over the WQs of a table. */
class RssQp final : public Qp, public FrameSink {
public:
	struct Spread {
		uint32_t fields = 0; /* TERN_HASH_* */
		HashKey key{};
	};

	/** @table: of @config; it has this QP as a user. */
	RssQp(DataPath &data, const ObjectTable<ReceiveWq> &wqs, const WqTable &table,
	      const QpConfig &config, const Spread &spread);

	bool deliver(const Packet &) override { return false; }
	void on_timer(uint64_t) override {}
	CommandStatus check(const hw::tern_hw_modify_qp &cmd) const override;
	void modify(const hw::tern_hw_modify_qp &) override {}
	void query(hw::tern_hw_qp_attr &attr) const override;
	void reset() override {}

	FrameSink *frame_sink() override { return this; }
	bool receives() const override { return true; }
	void receive(std::span<const std::byte> frame) override;
	StatsSet *frame_stats() const override { return stats_set(); }

private:
	bool take_turn(unsigned &) override { return false; }
	void enter_error() override {}
	void resume_requester(bool) override {}
	void resume_responder(bool) override {}

	const ObjectTable<ReceiveWq> &wqs_;
	const WqTable &table_;
	Spread spread_;
};

} // namespace tern
