/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "qemu/rnic/transport/qp.h"

namespace tern {

/** The Ethernet function: a send WQE is a frame to send, a receive WQE a buffer for one. */
class EthQp final : public Qp {
public:
	EthQp(Card &card, const QpConfig &config, SendQueue sq, RecvQueue rq)
	        : Qp(card, config, std::move(sq), std::move(rq))
	{
	}
	~EthQp() override;

	bool transmit(unsigned &budget) override;
	bool deliver(const Packet &packet) override;
	void on_timer(uint64_t now) override;
	hw::tern_hw_aq_status modify(uint32_t mask, const hw::tern_hw_qp_attr &attr) override;
	void query(hw::tern_hw_qp_attr &attr) const override;

	/** A frame that passed the filters. */
	void receive(std::span<const std::byte> frame);

private:
	void enter_error() override;
	void send_one();
	/** What is wrong with @wqe as a frame, or success. */
	hw::tern_hw_cqe_status build(const SendWqe &wqe, std::span<std::byte> frame);
};

} // namespace tern
