/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/transport/connected_qp.h"
#include "qemu/rnic/transport/requester.h"
#include "qemu/rnic/transport/responder.h"

namespace tern {

/** A reliable connected QP, or one of the two ends of an XRC connection, which has only one of the
 * halves (annex A14). */
class RcQp final : public ConnectedQp {
public:
	RcQp(Card &card, const QpConfig &config, SendQueue sq, RecvQueue rq);

	bool transmit(unsigned &budget) override;
	bool deliver(const Packet &packet) override;
	void query(hw::tern_hw_qp_attr &attr) const override;

private:
	friend class Requester;
	friend class Responder;

	void start_receiver() override { responder_.reset(Psn(attr_.rq_psn.get())); }
	void start_sender() override { requester_.reset(Psn(attr_.sq_psn.get())); }
	void stop() override;
	void flush_requests() override { requester_.flush(); }
	bool sender_idle() const override { return requester_.idle(); }
	void abandon_responses() override { responder_.abandon(); }
	void on_deadline(uint64_t now) override { requester_.on_timer(now); }
	void resume_requester(bool ok) override { requester_.resume(ok); }
	void resume_responder(bool ok) override { responder_.resume(ok); }

	Service service() const
	{
		return config_.type == hw::TERN_QPT_RC ? Service::Rc : Service::Xrc;
	}
	/** Whether a packet of this service is one that the peer may send. */
	bool expects(const Packet &packet) const;

	/** As ConnectedQp, with the opcode of RC in @bth turned into that of this service. */
	template <typename Fill>
	bool send_packet(Bth bth, const ExtHeaders &ext, size_t payload_size, Fill fill)
	{
		bth.opcode = opcode_of(service(), static_cast<Opcode>(bth.opcode));
		return ConnectedQp::send_packet(bth, ext, payload_size, fill);
	}

	Requester requester_;
	Responder responder_;
};

} // namespace tern
