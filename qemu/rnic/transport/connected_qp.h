/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/transport/ib_qp.h"

namespace tern {

/** A QP connected to one peer, reliable or unreliable, and the path to it. */
class ConnectedQp : public IbQp {
protected:
	using IbQp::IbQp;

	void stop() override { established_ = false; }
	void apply(uint32_t mask, const hw::tern_hw_qp_attr &attr) override;

	/** Whether the QP receives packets now and this one is from its peer; rejected packets are
	 * counted. */
	bool accepts(const Packet &packet);
	/** Whether the packet has the addresses of this connection. */
	bool from_peer(const Packet &packet) const;
	/** A request arrived, so the connection is established. */
	void note_established();

	/** Sends one packet on this connection; @fill writes @payload_size bytes and returns
	 * success. Returns the size of the frame, 0 if nothing was sent: @fill failed, or there is
	 * no room and the QP is parked. */
	template <typename Fill>
	size_t send_packet(Bth bth, const ExtHeaders &ext, size_t payload_size, Fill fill);

	uint32_t mtu_ = 256; /* path MTU, bytes */
	PathHeader path_;

private:
	void apply_path(const hw::tern_hw_qp_attr &attr);

	Gid local_gid_;
	Gid remote_gid_;
	uint16_t vlan_ = kNoVlan;
	bool established_ = false;
};

template <typename Fill>
size_t ConnectedQp::send_packet(Bth bth, const ExtHeaders &ext, size_t payload_size, Fill fill)
{
	bth.dest_qpn = attr_.dest_qpn.get();
	FrameBuilder frame(data_.out.buffer(), path_, bth, ext, payload_size);
	if (!fill(frame.payload()))
		return 0;
	return data_.out.send_roce(*this, frame);
}

} // namespace tern
