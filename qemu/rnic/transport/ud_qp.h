/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>
#include <optional>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/network/gid_table.h"
#include "qemu/rnic/transport/ib_qp.h"

namespace tern {

/**
 * An unreliable datagram QP (IBA vol. 1, 9.8.3): a message is one packet, and each send WQE has its
 * own destination. Also the general service interface (GSI), which has a well-known number and
 * Q_Key (3.9.3, 10.2.5).
 */
class UdQp final : public IbQp {
public:
	UdQp(DataPath &data, const QpConfig &config, SendQueue sq, RecvQueue rq);

	bool deliver(const Packet &packet) override;
	void query(hw::tern_hw_qp_attr &attr) const override;

private:
	bool take_turn(unsigned &budget) override;
	void start_receiver() override {}
	void start_sender() override { psn_ = Psn(attr_.sq_psn.get()); }
	void stop() override { set_well_known(); }
	/** A datagram is complete as soon as it is sent. */
	bool sender_idle() const override { return true; }
	void resume_requester(bool ok) override;

	bool is_gsi() const { return config_.type == hw::TERN_QPT_GSI; }
	void set_well_known();

	/** Reads the WQE at the head of the send queue; on a fault the QP fails. */
	Fetch load_send();
	void send_one();
	/** Completes the WQE at the head of the send queue, which is in scratch_send. */
	void end_send(hw::tern_hw_cqe_status status);
	/** None if the datagram must wait, for pages or room. */
	std::optional<hw::tern_hw_cqe_status> send(const SendWqe &wqe);
	AddressVector address(const GidEntry &source, const DatagramAddress &to) const;

	bool accepts(const Packet &packet);
	void receive(const Packet &packet);
	RecvResult place(const Packet &packet);
	void complete(const Packet &packet);

	Psn psn_; /* of the next packet */
};

} // namespace tern
