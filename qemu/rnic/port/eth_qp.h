/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <optional>

#include "qemu/rnic/port/frame_sink.h"
#include "qemu/rnic/port/tcp_segments.h"
#include "qemu/rnic/transport/qp.h"

namespace tern {

class Port;

/** The counters of a QP's frames. */
struct FrameCounters {
	hw::tern_hw_stat tx_frames;
	hw::tern_hw_stat tx_errors;
	hw::tern_hw_stat rx_frames;
	hw::tern_hw_stat rx_no_buffer;
	hw::tern_hw_stat rx_errors;
	std::optional<hw::tern_hw_stat> tx_bytes;
	std::optional<hw::tern_hw_stat> rx_bytes;
};

/** Fields of a frame's CQE besides its size. */
struct RxInfo {
	uint8_t flags = 0; /* TERN_CQE_IP_OK, TERN_CQE_L4_OK */
	uint32_t hash = 0;
};

/**
 * A QP whose messages are Ethernet frames: a send WQE is a frame to send, a receive WQE a buffer
 * for one. Used for the types ETH (Ethernet function) and RAW.
 */
class EthQp : public Qp, public FrameSink {
public:
	EthQp(DataPath &data, Port &port, const QpConfig &config, SendQueue sq, RecvQueue rq);
	~EthQp() override;

	bool deliver(const Packet &packet) override;
	CommandStatus check(const hw::tern_hw_modify_qp &cmd) const override;
	void modify(const hw::tern_hw_modify_qp &cmd) override;
	void query(hw::tern_hw_qp_attr &attr) const override;
	void reset() override;

	FrameSink *frame_sink() override;
	bool receives() const override;
	/** Receives a frame from a flow. */
	void receive(std::span<const std::byte> frame) override { receive(frame, {}); }
	StatsSet *frame_stats() const override { return stats_set(); }
	/** Receives a frame that passed the filters, or from a flow. */
	void receive(std::span<const std::byte> frame, const RxInfo &info);

protected:
	bool take_turn(unsigned &budget) override;
	void on_timer(uint64_t) override {}
	void enter_error() override;
	/** Whether page faults can be reported to the host, which needs a QP number. */
	virtual bool may_wait_for_pages() const { return true; }

private:
	void resume_requester(bool ok) override;
	void resume_responder(bool ok) override;
	/** Sends the WQE at the head of the send queue, or as many of its segments as there is room
	 * for; @budget is not 0. */
	void send_some(unsigned &budget);
	void send_whole(const SendWqe &wqe);
	void send_segments(const SendWqe &wqe, unsigned &budget);
	/** Sends the frame in the transmit buffer; false if there is no room. */
	bool send_frame(size_t size);
	/** Completes the WQE at the head of the send queue. */
	void finish_send(const SendWqe &wqe);
	/** Completes the WQE at the head of the send queue with an error and moves the QP to
	 * ERR. */
	void fail_send(const SendWqe &wqe, hw::tern_hw_cqe_status status);
	/** The status of a send WQE; none if it must wait for pages. */
	using Check = std::optional<hw::tern_hw_cqe_status>;
	/** Builds the frame of @wqe in the transmit buffer. */
	Check build(const SendWqe &wqe);
	/** Locates the headers of @wqe, which is to be segmented. */
	Check begin_segments(const SendWqe &wqe);
	/** Builds the next segment of @wqe, with @size bytes of payload, in the transmit buffer. */
	Check build_segment(const SendWqe &wqe, size_t size);
	Check gather(const SendWqe &wqe, size_t offset, std::span<std::byte> to);
	size_t max_frame() const;
	/** Completes the claimed receive WQE with @size bytes. */
	void end_recv(size_t size, hw::tern_hw_cqe_status status, const RxInfo &info = {});

	/** The WQE at the head of the send queue while it is sent in segments. */
	struct Segments {
		TcpHeaders headers;
		size_t sent = 0; /* bytes of payload */
		size_t count = 0;
	};

	Port &port_;
	const FrameCounters &counters_;
	std::optional<Segments> under_way_;
};

} // namespace tern
