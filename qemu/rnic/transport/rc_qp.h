/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/card.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/transport/qp.h"
#include "qemu/rnic/transport/requester.h"
#include "qemu/rnic/transport/responder.h"

namespace tern {

/** A reliable connected QP: its attributes and its state machine; the protocol is in the two
 * halves. */
class RcQp final : public Qp {
public:
	RcQp(Card &card, const QpConfig &config, SendQueue sq, RecvQueue rq);

	bool transmit(unsigned &budget) override;
	bool deliver(const Packet &packet) override;
	void on_timer(uint64_t now) override;
	hw::tern_hw_aq_status modify(uint32_t mask, const hw::tern_hw_qp_attr &attr) override;
	void query(hw::tern_hw_qp_attr &attr) const override;

private:
	friend class Requester;
	friend class Responder;

	void enter_error() override;
	/** Whether packets from the peer are taken: RTR and later (IBA 10.3.1). */
	bool receives() const;
	/** Whether responses are taken and requests under way go on. */
	bool sends() const { return state_ == hw::TERN_QPS_RTS || state_ == hw::TERN_QPS_SQD; }

	hw::tern_hw_aq_status check(uint32_t mask, const hw::tern_hw_qp_attr &attr) const;
	void apply(uint32_t mask, const hw::tern_hw_qp_attr &attr);
	void apply_path(const hw::tern_hw_qp_attr &attr);
	void enter(hw::tern_hw_qp_state to);
	void reset();
	/** SQD was asked for and the last request under way has ended. */
	void check_drained();
	void schedule_flush();

	/** Sends one packet on this connection; @fill writes @payload_size bytes and says whether
	 * it could. */
	template <typename Fill>
	bool send_packet(Bth bth, const ExtHeaders &ext, size_t payload_size, Fill fill);

	hw::tern_hw_qp_attr attr_{};
	PathHeader path_;
	Gid local_gid_;
	Gid remote_gid_;
	uint16_t vlan_ = kNoVlan;
	uint32_t mtu_ = 256; /* path MTU, bytes */
	bool established_ = false;
	bool draining_ = false;
	uint64_t flush_interval_ = 0; /* ns; in ERR, how often the receive queue is looked at */

	Requester requester_;
	Responder responder_;
};

template <typename Fill>
bool RcQp::send_packet(Bth bth, const ExtHeaders &ext, size_t payload_size, Fill fill)
{
	bth.dest_qpn = attr_.dest_qpn.get();
	FrameBuilder frame(card_.port.buffer(), path_, bth, ext, payload_size);
	if (!fill(frame.payload()))
		return false;
	const size_t size = frame.finish().size();
	card_.stats.add(hw::TERN_STAT_ROCE_TX_PACKETS);
	card_.stats.add(hw::TERN_STAT_ROCE_TX_BYTES, size);
	card_.port.send(size);
	return true;
}

} // namespace tern
