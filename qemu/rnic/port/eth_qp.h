/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <optional>

#include "qemu/rnic/port/frame_sink.h"
#include "qemu/rnic/transport/qp.h"

namespace tern {

/** Where a QP counts its frames. */
struct FrameCounters {
	hw::tern_hw_stat tx_frames;
	hw::tern_hw_stat tx_errors;
	hw::tern_hw_stat rx_frames;
	hw::tern_hw_stat rx_no_buffer;
	hw::tern_hw_stat rx_errors;
	std::optional<hw::tern_hw_stat> tx_bytes;
	std::optional<hw::tern_hw_stat> rx_bytes;
};

/**
 * A QP whose messages are Ethernet frames: a send WQE is a frame to send, a receive WQE a buffer
 * for one. The Ethernet function of the card is one, those of type RAW are the others.
 */
class EthQp : public Qp, public FrameSink {
public:
	EthQp(Card &card, const QpConfig &config, SendQueue sq, RecvQueue rq);
	~EthQp() override;

	bool transmit(unsigned &budget) override;
	bool deliver(const Packet &packet) override;
	void on_timer(uint64_t now) override;
	hw::tern_hw_aq_status modify(uint32_t mask, const hw::tern_hw_qp_attr &attr) override;
	void query(hw::tern_hw_qp_attr &attr) const override;

	FrameSink *frame_sink() override;
	bool receives() const override;
	/** A frame that passed the filters, or that a flow gives it. */
	void receive(std::span<const std::byte> frame) override;

protected:
	void enter_error() override;
	/** Whether the host can be told of a page fault: it is of a QP. */
	virtual bool may_wait_for_pages() const { return true; }

private:
	void resume_requester(bool ok) override;
	void resume_responder(bool ok) override;
	void schedule_flush();
	void send_one();
	/** Ends the WQE at the head of the send queue with an error, and the QP. */
	void fail_send(const SendWqe &wqe, hw::tern_hw_cqe_status status);
	/** What is wrong with @wqe as a frame, or success; nothing when it has to wait for pages.
	 */
	std::optional<hw::tern_hw_cqe_status> build(const SendWqe &wqe, std::span<std::byte> frame);
	/** Ends the claimed receive WQE; @size bytes arrived. */
	void end_recv(size_t size, hw::tern_hw_cqe_status status);

	const FrameCounters &counters_;
};

} // namespace tern
