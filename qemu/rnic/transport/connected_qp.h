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
	/** A request arrived: the peer takes the connection to be established. */
	void note_established();

	/** Sends one packet on this connection; @fill writes @payload_size bytes and says whether
	 * it could. */
	template <typename Fill>
	bool send_packet(Bth bth, const ExtHeaders &ext, size_t payload_size, Fill fill);

	uint32_t mtu_ = 256; /* path MTU, bytes */

private:
	void apply_path(const hw::tern_hw_qp_attr &attr);

	PathHeader path_;
	Gid local_gid_;
	Gid remote_gid_;
	uint16_t vlan_ = kNoVlan;
	bool established_ = false;
};

template <typename Fill>
bool ConnectedQp::send_packet(Bth bth, const ExtHeaders &ext, size_t payload_size, Fill fill)
{
	bth.dest_qpn = attr_.dest_qpn.get();
	FrameBuilder frame(card_.port.buffer(), path_, bth, ext, payload_size);
	if (!fill(frame.payload()))
		return false;
	card_.port.send_roce(frame.finish().size());
	return true;
}

} // namespace tern
