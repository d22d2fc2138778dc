/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/transport/connected_qp.h"
#include "qemu/rnic/transport/requester.h"
#include "qemu/rnic/transport/responder.h"

namespace tern {

/** The result of sending a packet with payload from host memory. */
enum class SendResult : uint8_t {
	Done,
	Full, /* there is no room: the QP is parked */
	NeedPages,
	Failed, /* the payload cannot be read */
};

/** A reliable connected QP, or one end of an XRC connection, which has only a requester or only a
 * responder (annex A14). */
class RcQp final : public ConnectedQp {
public:
	RcQp(DataPath &data, const QpConfig &config, SendQueue sq, RecvQueue rq);

	bool deliver(const Packet &packet) override;
	uint32_t deliver_burst(const Packet &burst) override;
	void forget_congestion() override;
	void query(hw::tern_hw_qp_attr &attr) const override;
	void release_tags() override;
	void describe(Json &to) const override;

private:
	friend class Requester;
	friend class Responder;

	bool send_data(unsigned &budget) override;
	void start_receiver() override { responder_.reset(Psn(attr_.rq_psn.get())); }
	void start_sender() override { requester_.reset(Psn(attr_.sq_psn.get())); }
	void stop() override;
	void apply(uint32_t mask, const hw::tern_hw_qp_attr &attr) override;
	void abandon_requests() override { requester_.abandon(); }
	bool flush_requests(unsigned &budget) override { return requester_.flush(budget); }
	bool sender_idle() const override { return requester_.idle(); }
	void end_responses() override { responder_.end(); }
	void on_deadline(uint64_t now) override { requester_.on_timer(now); }
	void resume_requester(bool ok) override { requester_.resume(ok); }
	void resume_responder(bool ok) override { responder_.resume(ok); }

	Service service() const
	{
		return config_.type == hw::TERN_QPT_RC ? Service::Rc : Service::Xrc;
	}
	/** Whether the peer may send this packet of the QP's service. */
	bool expects(const Packet &packet) const;

	/** As ConnectedQp::send_packet(); converts the RC opcode in @bth to this service. */
	template <typename Fill>
	size_t send_packet(Bth bth, const ExtHeaders &ext, size_t payload_size, Fill fill)
	{
		bth.opcode = opcode_of(service(), static_cast<Opcode>(bth.opcode));
		return ConnectedQp::send_packet(bth, ext, payload_size, fill);
	}

	/**
	 * As above, for a packet with payload from host memory: lent if @locate finds it and the
	 * wire takes it, otherwise copied by @fill. @bth is converted to this service. @sent: the
	 * size of the frame, 0 if none was sent.
	 */
	template <typename Locate, typename Fill>
	SendResult send_data(Bth &bth, const ExtHeaders &ext, size_t size, Locate locate, Fill fill,
	                     size_t &sent);
	/** Lends the ranges found by @locate, more than one path MTU, as a burst if the wire takes
	 * it. */
	template <typename Locate>
	Wire::Lend lend_burst(Bth bth, const ExtHeaders &ext, Locate locate);

	Requester requester_;
	Responder responder_;
	bool requests_first_ = false; /* in this turn */
};

template <typename Locate, typename Fill>
SendResult RcQp::send_data(Bth &bth, const ExtHeaders &ext, size_t size, Locate locate, Fill fill,
                           size_t &sent)
{
	bth.opcode = opcode_of(service(), static_cast<Opcode>(bth.opcode));
	FrameBuilder frame = build(bth, ext, size);
	HostRanges ranges;
	if (size >= Transmitter::kMinLent && locate(ranges)) {
		const auto lent = data_.out.lend(*this, frame, ranges, number);
		if (lent == Wire::Lend::Full)
			return SendResult::Full;
		if (lent == Wire::Lend::Done) {
			sent = whole_size(frame.head().size(), size);
			return SendResult::Done;
		}
	}
	const Access access = fill(frame.payload());
	if (access != Access::Ok)
		return access == Access::NeedPages ? SendResult::NeedPages : SendResult::Failed;
	sent = data_.out.send_roce(*this, frame);
	return sent ? SendResult::Done : SendResult::Full;
}

template <typename Locate>
Wire::Lend RcQp::lend_burst(Bth bth, const ExtHeaders &ext, Locate locate)
{
	HostRanges ranges;
	if (!locate(ranges))
		return Wire::Lend::Refused;
	bth.opcode = opcode_of(service(), static_cast<Opcode>(bth.opcode));
	return data_.out.lend_burst(*this, build(bth, ext, mtu_), ranges, number, mtu_);
}

} // namespace tern
