/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/network/gid_table.h"
#include "qemu/rnic/transport/ib_qp.h"

namespace tern {

/** A QP connected to one peer, reliable or unreliable, and the path to it. As a notification point
 * of congestion control it tells the peer of congestion, as a reaction point it is told. */
class ConnectedQp : public IbQp {
public:
	void deliver_cnp(const Packet &packet) final;

protected:
	using IbQp::IbQp;

	void stop() override;
	void apply(uint32_t mask, const hw::tern_hw_qp_attr &attr) override;

	/** Whether the QP receives packets now and this one is from its peer; rejected packets are
	 * counted. If congestion has marked it, a CNP becomes due. */
	bool accepts(const Packet &packet);
	/** Sends requests and responses. Returns true if it stopped only for @budget. */
	virtual bool send_data(unsigned &budget) = 0;
	/** Whether the packet has the addresses of this connection. */
	bool from_peer(const Packet &packet) const;
	/** A request arrived, so the connection is established. */
	void note_established();
	/** Completes the claimed receive WQE: a message of @byte_len bytes ends with @packet. */
	void complete_message(const Packet &packet, uint8_t opcode, uint64_t byte_len);

	/** Sends one packet on this connection; @fill writes @payload_size bytes and returns
	 * success. Returns the size of the frame, 0 if nothing was sent: @fill failed, or there is
	 * no room and the QP is parked. */
	template <typename Fill>
	size_t send_packet(Bth bth, const ExtHeaders &ext, size_t payload_size, Fill fill);
	/** The headers of a packet on this connection, in the transmit buffer. */
	FrameBuilder build(Bth bth, const ExtHeaders &ext, size_t payload_size);

	uint32_t mtu_ = 256; /* path MTU, bytes */
	PathHeader path_;

private:
	bool take_turn(unsigned &budget) final;
	/** Sends the CNP that is due, if any. Returns false if there is no room. */
	bool send_cnp(unsigned &budget);
	AddressVector address() const;
	/** A packet arrived that congestion had marked. */
	void notify();

	GidEntry source_;
	Gid remote_gid_;
	bool established_ = false;
	bool cnp_due_ = false;
	uint64_t next_cnp_ = 0; /* ns; none is sent before */
};

/* Inline: it is part of each packet's cost. */
inline FrameBuilder ConnectedQp::build(Bth bth, const ExtHeaders &ext, size_t payload_size)
{
	bth.dest_qpn = attr_.dest_qpn.get();
	FrameBuilder frame(data_.out.buffer(), path_, bth, ext, payload_size);
	/* Data may be marked by a congested switch; the peer's CNPs will slow it down. */
	if (data_.takes_cnps() && opcode_info(bth.opcode).payload)
		frame.mark_ect();
	return frame;
}

template <typename Fill>
size_t ConnectedQp::send_packet(Bth bth, const ExtHeaders &ext, size_t payload_size, Fill fill)
{
	FrameBuilder frame = build(bth, ext, payload_size);
	if (!fill(frame.payload()))
		return 0;
	return data_.out.send_roce(*this, frame);
}

} // namespace tern
