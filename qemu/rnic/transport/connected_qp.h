/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/card.h"
#include "qemu/rnic/formats/packet.h"
#include "qemu/rnic/transport/ib_qp.h"

namespace tern {

/** A QP with one peer, reliable or not: the path between the two. */
class ConnectedQp : public IbQp {
protected:
	using IbQp::IbQp;

	void stop() override { established_ = false; }
	void apply(uint32_t mask, const hw::tern_hw_qp_attr &attr) override;

	/** Whether this QP takes packets now, and this one comes from its peer; what does not is
	 * counted. */
	bool accepts(const Packet &packet);
	/** Whether it has the addresses of this connection. */
	bool from_peer(const Packet &packet) const;
	/** A request arrived: the peer takes the connection to be established. */
	void note_established();

	/** Sends one packet on this connection; @fill writes @payload_size bytes and says whether
	 * it could. The size of the frame; 0 when nothing was sent. */
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
	FrameBuilder frame(card_.port.buffer(), path_, bth, ext, payload_size);
	if (!fill(frame.payload()))
		return 0;
	return card_.port.send_roce(frame);
}

} // namespace tern
